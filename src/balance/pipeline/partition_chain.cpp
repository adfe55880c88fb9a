#include "hetseq/balance/pipeline/partition_chain.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "hetseq/util/error.hpp"

#include "best_cuts.hpp"
#include "chain_costs.hpp"
#include "cut_costs.hpp"
#include "nearest_cut.hpp"

namespace hetseq {

namespace {

constexpr std::size_t simulated_cuts = 8;

CutCosts::Sum sum_of(const ChainCosts& costs,
                     const TiedUnits& tied,
                     std::span<const ChainStage> cut) {
    CutCosts::Sum sum{{}, costs.sum_ms(tied, cut)};
    for (std::size_t s = 0; s < cut.size(); ++s)
        if (tied.is_read_in(cut[s]))
            sum.stages.push_back(s);
    return sum;
}

CutCosts costs_of(const ChainCosts& costs, std::span<const ChainStage> cut) {
    CutCosts own;
    for (std::size_t s = 0; s < cut.size(); ++s) {
        const ChainDevices& devices = costs.problem().devices[cut[s].device_class];
        own.stages.push_back({costs.forward_ms(cut[s]),
                              costs.backward_ms(cut[s]),
                              costs.fixed_mb(cut[s]),
                              costs.in_flight_mb(cut[s]),
                              devices.memory_mb,
                              devices.host});
        if (s + 1 == cut.size())
            break;
        const std::size_t unit = cut[s].end - 1;
        const std::size_t front = cut[s].device_class, behind = cut[s + 1].device_class;
        own.links.push_back({costs.activations_ms(unit, front, behind),
                             costs.gradients_ms(unit, front, behind),
                             costs.problem().gradients_mb[unit] > 0,
                             costs.card_part(front, behind),
                             costs.card_part(behind, front)});
    }
    for (const TiedUnits& tied : costs.problem().tied)
        own.sums.push_back(sum_of(costs, tied, cut));
    return own;
}

PipelineCut evaluated(const ChainCosts& costs, std::span<const ChainStage> stages) {
    PipelineCut cut = evaluate(costs_of(costs, stages), costs.problem().micro_batches, 0);
    cut.stages.assign(stages.begin(), stages.end());
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
        return evaluated(costs, nearest_cut(costs));
    add_single_stage(costs, cuts);
    PipelineCut best = evaluated(costs, cuts.front().stages);
    for (const ScoredCut& scored : cuts)
        if (PipelineCut cut = evaluated(costs, scored.stages); is_faster(cut, best))
            best = std::move(cut);
    return best;
}

PipelineCut with_more_in_flight(const ChainProblem& problem, PipelineCut cut) {
    const CutCosts costs = costs_of(ChainCosts{problem}, cut.stages);
    return with_more_in_flight(costs, problem.micro_batches, std::move(cut));
}

PipelineCut evaluate_cut(const ChainProblem& problem, std::span<const ChainStage> stages) {
    check_stages(problem, stages);
    return evaluated(ChainCosts{problem}, stages);
}

}  // namespace hetseq
