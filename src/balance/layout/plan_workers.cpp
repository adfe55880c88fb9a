#include "hetseq/balance/layout/plan_workers.hpp"

#include "layout_planner.hpp"

namespace hetseq {

std::size_t LayoutPlan::ranks() const noexcept {
    std::size_t sum = 0;
    for (const WorkerPlan& worker : workers)
        sum += worker.ranks.size();
    return sum;
}

LayoutPlan plan_workers(const LayoutProblem& problem,
                        std::span<const std::vector<int>> workers,
                        WorkerState state) {
    return LayoutPlanner{problem}.plan(workers, state);
}

LayoutPlan plan_given(const LayoutProblem& problem,
                      std::span<const GivenWorker> workers,
                      WorkerState state) {
    return LayoutPlanner{problem}.given(workers, state);
}

}  // namespace hetseq
