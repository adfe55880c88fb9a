#include "hetseq/balance/pipeline/partition_chain.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/pipeline/simulate_pipeline.hpp"

#include "best_cuts.hpp"
#include "chain_costs.hpp"
#include "nearest_cut.hpp"

namespace hetseq {

namespace {

constexpr std::size_t simulated_cuts = 8;
constexpr double worth_memory = 0.99;  // of the time without

// Those of one class are all on one host, or each on its own.
std::optional<std::size_t> host_of(const ChainCosts& costs, const ChainStage& stage) {
    return costs.problem().devices[stage.device_class].host;
}

SimulatedPipeline simulate(const ChainCosts& costs,
                           std::span<const ChainStage> cut,
                           std::size_t extra) {
    const std::size_t micro_batches = costs.problem().micro_batches;
    std::vector<PipelineStage> stages;
    std::vector<PipelineLink> links;
    for (std::size_t s = 0; s < cut.size(); ++s) {
        stages.push_back({std::vector<double>(micro_batches, costs.forward_ms(cut[s])),
                          std::vector<double>(micro_batches, costs.backward_ms(cut[s])),
                          most_in_flight(cut.size(), s, extra),
                          host_of(costs, cut[s])});
        if (s + 1 == cut.size())
            break;
        const std::size_t unit = cut[s].end - 1;
        const std::size_t front = cut[s].device_class, behind = cut[s + 1].device_class;
        links.push_back({costs.activations_ms(unit, front, behind),
                         costs.gradients_ms(unit, front, behind),
                         costs.problem().gradients_mb[unit] > 0,
                         costs.card_part(front, behind),
                         costs.card_part(behind, front)});
    }
    return simulate_pipeline(stages, links);
}

// When all is done: groups of tied parameters are summed in turn, each when its last stage is
// through.
double end_ms(const ChainCosts& costs,
              std::span<const ChainStage> cut,
              const SimulatedPipeline& simulated) {
    double end_ms = simulated.makespan_ms, summed_ms = 0;
    for (const TiedUnits& tied : costs.problem().tied) {
        const double takes_ms = costs.sum_ms(tied, cut);
        for (std::size_t s = 0; s < cut.size(); ++s)
            if (tied.is_read_in(cut[s]))
                summed_ms = std::max(summed_ms, simulated.stages[s].end_ms);
        summed_ms += takes_ms;
        if (takes_ms > 0)
            end_ms = std::max(end_ms, summed_ms);
    }
    return end_ms;
}

PipelineCut evaluate(const ChainCosts& costs,
                     std::span<const ChainStage> stages,
                     std::size_t extra = 0) {
    const SimulatedPipeline simulated = simulate(costs, stages, extra);
    PipelineCut cut;
    cut.extra_in_flight = extra;
    cut.stages.assign(stages.begin(), stages.end());
    cut.predicted_ms = end_ms(costs, stages, simulated);
    cut.period_ms = costs.period_ms(stages);
    if (cut.predicted_ms > 0)
        cut.bubble = 1 - (1 - simulated.bubble) * simulated.makespan_ms / cut.predicted_ms;
    cut.score_ms = costs.score_ms(cut.period_ms, costs.latency_ms(stages));
    for (std::size_t s = 0; s < stages.size(); ++s)
        cut.memory.push_back({costs.memory_mb(stages[s], most_in_flight(stages.size(), s, extra)),
                              costs.problem().devices[stages[s].device_class].memory_mb});
    return cut;
}

// In a pipeline links may cost more than the score says; a device alone takes what it says.
void add_single_stage(const ChainCosts& costs, std::vector<ScoredCut>& cuts) {
    std::vector<ScoredCut> singles;
    for (std::size_t c = 0; c < costs.classes(); ++c) {
        const ChainStage stage{c, 0, costs.units()};
        const double ms = costs.stage_ms(stage);
        if (costs.problem().devices[c].count > 0 && costs.most_in_flight(stage) > 0)
            singles.push_back({costs.score_ms(ms, ms), {stage}});
    }
    if (!singles.empty())
        cuts.push_back(*std::min_element(singles.begin(), singles.end()));
}

bool is_faster(const PipelineCut& a, const PipelineCut& b) {
    const std::size_t a_devices = a.stages.size(), b_devices = b.stages.size();
    return std::tie(a.predicted_ms, a_devices, a.stages) <
           std::tie(b.predicted_ms, b_devices, b.stages);
}

void check_stages(const ChainProblem& problem, std::span<const ChainStage> stages) {
    std::size_t end = 0;
    for (const ChainStage& stage : stages) {
        HETSEQ_ASSERT(stage.device_class < problem.devices.size());
        HETSEQ_ASSERT(stage.begin == end && stage.end > stage.begin);
        end = stage.end;
    }
    HETSEQ_ASSERT(end == problem.units());
}

}  // namespace

std::size_t PipelineCut::tightest() const {
    const auto most = std::max_element(
        memory.begin(), memory.end(), [](const StageMemory& a, const StageMemory& b) {
            return a.overshoot_mb() < b.overshoot_mb();
        });
    return static_cast<std::size_t>(most - memory.begin());
}

PipelineCut partition_chain(const ChainProblem& problem) {
    const ChainCosts costs{problem};
    std::vector<ScoredCut> cuts = best_cuts(costs, simulated_cuts);
    if (cuts.empty())
        return evaluate(costs, nearest_cut(costs));
    add_single_stage(costs, cuts);
    PipelineCut best = evaluate(costs, cuts.front().stages);
    for (const ScoredCut& scored : cuts)
        if (PipelineCut cut = evaluate(costs, scored.stages); is_faster(cut, best))
            best = std::move(cut);
    return best;
}

PipelineCut with_more_in_flight(const ChainProblem& problem, PipelineCut cut) {
    const ChainCosts costs{problem};
    for (std::size_t extra = cut.extra_in_flight + 1; extra < cut.stages.size(); ++extra) {
        PipelineCut more = evaluate(costs, cut.stages, extra);
        if (!more.fits() || more.predicted_ms > worth_memory * cut.predicted_ms)
            break;
        cut = std::move(more);
    }
    return cut;
}

PipelineCut evaluate_cut(const ChainProblem& problem, std::span<const ChainStage> stages) {
    check_stages(problem, stages);
    return evaluate(ChainCosts{problem}, stages);
}

}  // namespace hetseq
