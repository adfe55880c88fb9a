#include "layout_draft.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"
#include "hetseq/balance/usable_memory.hpp"

namespace hetseq {

namespace {

constexpr double of_all_reduce = 0.5;  // the sum alone, or the gathering alone

std::string missing_memory(const WorkerPlan& worker, std::size_t number) {
    for (std::size_t s = 0; s < worker.stages.size(); ++s) {
        const StageMemory& memory = worker.memory[s];
        if (memory.overshoot_mb() <= 0)
            continue;
        std::string who = "rank " + std::to_string(worker.ranks[s]);
        if (worker.stages.size() > 1)
            who += ", stage " + std::to_string(s) + " of worker " + std::to_string(number) + ",";
        const auto of_memory = [](double mb) {
            return std::to_string(std::llround(mb / usable_memory));
        };
        return who + " would need " + of_memory(memory.needed_mb) + " of " +
               of_memory(memory.usable_mb) + " MiB";
    }
    return {};
}

}  // namespace

bool LayoutDraft::is_better(const LayoutDraft& other) const {
    return std::tuple(overshoot_mb, update_ms()) <
           std::tuple(other.overshoot_mb, other.update_ms());
}

LayoutDraft LayoutTimes::draft(const DividedRanks& ranks,
                               std::vector<const WorkerCut*> cuts) const {
    LayoutDraft draft;
    std::vector<StepCost> costs;
    for (const WorkerCut* cut : cuts) {
        costs.push_back(cut->cost);
        draft.overshoot_mb = std::max(draft.overshoot_mb, cut->overshoot_mb);
        draft.optimizer_ms = std::max(draft.optimizer_ms,
                                      optimizer_ms(*cut) / static_cast<double>(ranks.sharded_over));
    }
    draft.cuts = std::move(cuts);
    draft.shares = shares(ranks, draft.cuts, costs);
    draft.compute_ms = makespan_ms(costs, draft.shares);
    add_reduction(ranks, draft);
    return draft;
}

std::vector<std::int64_t> LayoutTimes::shares(const DividedRanks& ranks,
                                              const std::vector<const WorkerCut*>& cuts,
                                              const std::vector<StepCost>& costs) const {
    if (!problem_.given_shares)
        return allocate(costs, problem_.batch);
    std::vector<LayoutProblem::Sharer> workers;
    for (std::size_t w = 0; w < cuts.size(); ++w)
        workers.push_back({ranks.workers[w].ranks, cuts[w]->size});
    return problem_.given_shares(workers);
}

double LayoutTimes::optimizer_ms(const WorkerCut& cut) const {
    double longest_ms = 0;
    for (const ChainStage& stage : cut.stages)
        longest_ms =
            std::max(longest_ms, problem_.optimizer_ms(stage.begin, stage.end, stage.device_class));
    return longest_ms;
}

void LayoutTimes::add_reduction(const DividedRanks& ranks, LayoutDraft& draft) const {
    std::vector<std::vector<int>> by_stage;
    for (std::size_t w = 0; w < ranks.workers.size(); ++w)
        by_stage.push_back(ranks_by_stage(ranks.workers[w], *draft.cuts[w]));
    std::vector<SummedWorker> summed;
    for (std::size_t w = 0; w < ranks.workers.size(); ++w) {
        const WorkerCut& cut = *draft.cuts[w];
        summed.push_back({by_stage[w],
                          cut.stages,
                          cut.size,
                          cut.cost.time_ms(draft.shares[w]),
                          &ranks.workers[w].kind});
    }
    const bool sharded = ranks.sharded_over > 1;
    const double end_ms = sums_.end_ms(summed, sharded ? of_all_reduce : 1);
    draft.reduce_ms = std::max(0.0, end_ms - draft.compute_ms);
    if (!sharded)
        return;
    std::vector<int> all;
    for (const std::vector<int>& own : by_stage)
        all.push_back(own.front());
    draft.reduce_ms += of_all_reduce * sums_.whole_ms(all);
}

// Those of a class in their order.
std::vector<int> LayoutTimes::ranks_by_stage(const WorkerRanks& worker,
                                             const WorkerCut& cut) const {
    std::vector<int> left = worker.ranks, used;
    for (const ChainStage& stage : cut.stages) {
        const auto next = std::find_if(left.begin(), left.end(), [&](int rank) {
            return problem_.class_of[static_cast<std::size_t>(rank)] == stage.device_class;
        });
        HETSEQ_ASSERT(next != left.end());
        used.push_back(*next);
        left.erase(next);
    }
    return used;
}

WorkerPlan LayoutTimes::worker_plan(const WorkerRanks& worker,
                                    const WorkerCut& cut,
                                    std::int64_t units,
                                    const PipelineCut& evaluated) const {
    return {.ranks = ranks_by_stage(worker, cut),
            .stages = cut.stages,
            .micro_batch = problem_.sizes[cut.size].micro_batch,
            .extra_in_flight = evaluated.extra_in_flight,
            .memory = evaluated.memory,
            .cost = cut.cost,
            .units = units,
            .ms = cut.cost.time_ms(units),
            .bubble = evaluated.bubble};
}

LayoutPlan LayoutTimes::finished(const DividedRanks& ranks,
                                 const LayoutDraft& draft,
                                 const WorkerCuts& cuts) const {
    LayoutPlan plan{.workers = {},
                    .shards_state = ranks.sharded_over > 1,
                    .compute_ms = draft.compute_ms,
                    .reduce_ms = draft.reduce_ms,
                    .optimizer_ms = draft.optimizer_ms,
                    .update_ms = draft.update_ms()};
    std::map<std::pair<const WorkerCut*, std::int64_t>, PipelineCut> known;  // cuts have links
    for (std::size_t w = 0; w < ranks.workers.size(); ++w) {
        const WorkerRanks& worker = ranks.workers[w];
        const WorkerCut& cut = *draft.cuts[w];
        const std::int64_t units = draft.shares[w];
        const auto [at, is_new] = known.try_emplace({&cut, units});
        if (is_new)
            at->second = cuts.evaluated(worker.kind, cut, units);
        plan.workers.push_back(worker_plan(worker, cut, units, at->second));
        if (plan.why_not.empty())
            plan.why_not = missing_memory(plan.workers.back(), w);
    }
    return plan;
}

}  // namespace hetseq
