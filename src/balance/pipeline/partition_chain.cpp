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

PipelineCut evaluated(const ChainCosts& costs, std::span<const ChainStage> stages) {
    PipelineCut cut = evaluate(costs.cut(stages), costs.problem().micro_batches, 0);
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
            singles.push_back({score_ms(costs.problem().micro_batches, ms, ms), {stage}});
    }
    if (!singles.empty())
        cuts.push_back(*std::min_element(singles.begin(), singles.end()));
}

bool is_faster(const PipelineCut& a, const PipelineCut& b) {
    const std::size_t a_devices = a.stages.size(), b_devices = b.stages.size();
    return std::tie(a.predicted_ms, a_devices, a.stages) <
           std::tie(b.predicted_ms, b_devices, b.stages);
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
    const CutCosts costs = ChainCosts{problem}.cut(cut.stages);
    return with_more_in_flight(costs, problem.micro_batches, std::move(cut));
}

PipelineCut evaluate_cut(const ChainProblem& problem, std::span<const ChainStage> stages) {
    for (const ChainStage& stage : stages)
        HETSEQ_ASSERT(stage.device_class < problem.devices.size());
    check_stages(stages, problem.units());
    return evaluated(ChainCosts{problem}, stages);
}

}  // namespace hetseq
