#include "hetseq/balance/layout/compare_layouts.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "divisions.hpp"
#include "layout_planner.hpp"

namespace hetseq {

namespace {

// Divisions may leave out the same ranks.
auto what_it_is(const LayoutPlan& plan) {
    std::vector<std::tuple<std::vector<int>, std::vector<ChainStage>, std::int64_t>> workers;
    for (const WorkerPlan& worker : plan.workers)
        workers.emplace_back(worker.ranks, worker.stages, worker.micro_batch);
    std::sort(workers.begin(), workers.end());
    return std::pair(plan.shards_state, std::move(workers));
}

// Of those that do not fit, times say nothing.
bool is_preferred(const LayoutPlan& a, const LayoutPlan& b) {
    if (!a.fits() || !b.fits())
        return a.fits() && !b.fits();
    return std::pair(a.update_ms, a.ranks()) < std::pair(b.update_ms, b.ranks());
}

}  // namespace

std::vector<LayoutPlan> compare_layouts(const LayoutProblem& problem) {
    LayoutPlanner planner{problem};
    std::vector<LayoutPlan> plans;
    std::set<decltype(what_it_is(std::declval<const LayoutPlan&>()))> seen;
    for (Division& division : candidate_divisions(planner)) {
        LayoutPlan plan = planner.plan(division.workers, division.state);
        plan.name = std::move(division.name);
        if (seen.insert(what_it_is(plan)).second)
            plans.push_back(std::move(plan));
    }
    std::stable_sort(plans.begin(), plans.end(), is_preferred);
    return plans;
}

}  // namespace hetseq
