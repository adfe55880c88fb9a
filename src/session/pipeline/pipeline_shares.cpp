#include "hetseq/session/pipeline/pipeline_shares.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/starting_shares.hpp"

#include "session/capacity_units.hpp"

namespace hetseq {

namespace {

// By rank: what the first stages of pipelines take at once, in micro-batches that all their stages
// can compute; 0 of the other ranks.
std::vector<std::int64_t> capacities_of(const PipelineLayout& layout, std::size_t ranks) {
    std::vector<std::int64_t> capacities(ranks, 0);
    for (const WorkerLayout& worker : layout.workers)
        capacities[static_cast<std::size_t>(worker.ranks.front())] = worker.micro_batch;
    return capacities;
}

// The ranks of a worker compute micro-batches of as many samples as any of them holds. One whose
// capacity is 0 has no limit of its own.
void take_least_samples(const PipelineLayout& layout, std::vector<std::int64_t>& max_samples) {
    for (const WorkerLayout& worker : layout.workers) {
        std::int64_t least = MicroBatchCap::none;
        for (const int rank : worker.ranks)
            if (const std::int64_t own = max_samples[static_cast<std::size_t>(rank)]; own > 0)
                least = std::min(least, own);
        for (const int rank : worker.ranks)
            max_samples[static_cast<std::size_t>(rank)] = least;
    }
}

// The same times for `factor` times as many units.
StepCost in_other_units(const StepCost& cost, double factor) {
    std::vector<CostPoint> points;
    for (const CostPoint& point : cost.table.points()) {
        const std::int64_t units = std::llround(static_cast<double>(point.units) * factor);
        if (points.empty() || points.back().units < units)
            points.push_back({units, point.ms});
    }
    StepCost other = cost;
    other.table = StepTable(std::move(points));
    return other;
}

// As planned for a full batch of so many units; empty where nothing was measured.
std::vector<StepCost> planned_costs(const PipelineLayout& layout,
                                    const std::vector<std::int64_t>& capacities,
                                    std::int64_t full_batch) {
    std::vector<StepCost> costs = declared_costs(capacities);
    for (const WorkerLayout& worker : layout.workers) {
        if (!worker.cost)
            return {};
        const auto leader = static_cast<std::size_t>(worker.ranks.front());
        costs[leader] = in_other_units(
            *worker.cost, static_cast<double>(full_batch) / static_cast<double>(layout.batch));
        costs[leader].micro_batch = capacities[leader];
    }
    return costs;
}

// Of another layout: shares are those of workers' first ranks.
void check_of_leaders(const RecordedAllocations& recorded,
                      const PipelineLayout& layout,
                      const std::string& file) {
    for (const auto& [update, units] : recorded.by_update)
        for (std::size_t r = 0; r < units.size(); ++r) {
            const PipelineLayout::Place place = layout.place_of(static_cast<int>(r));
            if (units[r] > 0 && place.stage > 0)
                throw BadConfig(file + " gives rank " + std::to_string(r) + " work",
                                "it is stage " + std::to_string(place.stage) +
                                    " of virtual worker " + std::to_string(place.worker) +
                                    ", whose share is told of its first stage",
                                "give the file of a run with the same --virtual-workers, or "
                                "another --balance");
        }
}

// Whether times of an earlier start are of micro-batches that these pipelines may have.
bool hold(const std::vector<StepCost>& costs,
          const std::vector<int>& leaders,
          const std::vector<std::int64_t>& capacities) {
    return costs.size() == capacities.size() &&
           std::all_of(leaders.begin(), leaders.end(), [&](int leader) {
               const auto rank = static_cast<std::size_t>(leader);
               return costs[rank].micro_batch <= capacities[rank];
           });
}

}  // namespace

SharePlan pipeline_share_plan(const HostComm& world,
                              const RunSettings& settings,
                              const RecordedAllocations& recorded,
                              Replica& replica,
                              const StartingPoint& start) {
    const PipelineLayout& layout = replica.stage()->layout();
    agree_on(world,
             [&] { check_of_leaders(recorded, layout, settings.options().balance.plan_file); });
    std::vector<std::int64_t> capacities =
        capacities_of(layout, static_cast<std::size_t>(world.size()));
    std::optional<RaggedWork> work;
    if (settings.is_ragged()) {
        work = ragged_work(settings, replica.feed().corpus(), recorded.item_cost);
        capacities = in_units(capacities, *work);
        if (!recorded.by_update.empty())
            work->full_batch = recorded.full_batch();
        if (!work->max_samples.empty())
            take_least_samples(layout, work->max_samples);
    }
    const std::string& balance = settings.options().balance.policy;
    std::vector<StepCost> costs;
    if (layout.workers.size() > 1 && balance == "auto")
        costs =
            hold(start.costs, replica.workers().leaders(), capacities)
                ? start.costs
                : planned_costs(
                      layout, capacities, work ? work->full_batch : replica.plan().full_batch());
    if (balance == "equal")
        costs = equal_costs(capacities);
    else if (balance == "file")
        costs = recorded_costs(capacities, recorded);
    else if (costs.empty())
        costs = declared_costs(capacities);
    SharePlan plan(world, layout.workers.size() > 1 ? balance : "pipeline", std::move(costs));
    if (work)
        plan.set_ragged(std::move(*work));
    plan.set_leaders(replica.workers().leaders());
    return plan;
}

}  // namespace hetseq
