#include "hetseq/plan/cluster_plan.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

constexpr double all_but_best = 0.999;  // of the highest rate: what counts as reaching it
constexpr std::int64_t fewest_tried = 64;

// By rank, node class by node class.
std::vector<StepCost> costs_of(const Cluster& cluster) {
    std::vector<StepCost> costs;
    for (const NodeClass& node : cluster.nodes)
        costs.insert(costs.end(),
                     static_cast<std::size_t>(node.count * node.gpus),
                     cluster.devices[node.device].cost);
    return costs;
}

std::int64_t capacity_of(std::span<const StepCost> costs, std::int64_t batch) {
    std::int64_t capacity = 0;
    for (const StepCost& cost : costs)
        capacity += std::min(cost.max_units, batch);
    return capacity;
}

std::vector<std::int64_t> cut(const std::vector<StepCost>& costs, Cut how, std::int64_t batch) {
    if (how == Cut::balanced)
        return allocate(costs, batch);
    std::vector<std::int64_t> capacities;
    for (const StepCost& cost : costs)
        capacities.push_back(how == Cut::equal ? 1 : cost.micro_batch);
    std::vector<StepCost> declared = declared_costs(capacities);
    for (std::size_t r = 0; r < costs.size(); ++r)
        declared[r].max_units = costs[r].max_units;
    return allocate(declared, batch);
}

Cluster with_count(const Cluster& cluster, std::size_t node, std::int64_t count) {
    Cluster changed = cluster;
    changed.nodes[node].count = count;
    return changed;
}

// Empty if there are no ranks or too many, or if they cannot take the batch.
std::optional<NodeCount> try_count(const Cluster& cluster, std::size_t node, std::int64_t count) {
    const Cluster changed = with_count(cluster, node, count);
    const std::int64_t ranks = changed.ranks();
    if (ranks == 0 || ranks > most_planned_ranks ||
        capacity_of(costs_of(changed), changed.batch()) < changed.batch())
        return std::nullopt;
    const PlannedUpdate update = plan_update(changed);
    return NodeCount{count, update.times.step_ms, update.rate, update.efficiency};
}

// Around the described number, and by factors of 1.5 up to four times it.
std::set<std::int64_t> counts_to_try(const Cluster& cluster, const NodeClass& node) {
    const std::int64_t others = cluster.ranks() - node.count * node.gpus;
    const std::int64_t most =
        std::min((most_planned_ranks - others) / node.gpus, std::max(fewest_tried, 4 * node.count));
    std::set<std::int64_t> counts{0, node.count};
    if (node.count > 0)
        counts.insert(node.count - 1);
    if (node.count < most)
        counts.insert(node.count + 1);
    for (std::int64_t count = 1; count < most; count += (count + 1) / 2)
        counts.insert(count);
    counts.insert(most);
    return counts;
}

using Tried = std::vector<NodeCount>;

// The first within a thousandth of the highest rate.
Tried::const_iterator best_of(const Tried& tried) {
    const auto highest =
        std::max_element(tried.begin(), tried.end(), [](const NodeCount& a, const NodeCount& b) {
            return a.rate < b.rate;
        });
    return std::find_if(tried.begin(), tried.end(), [&](const NodeCount& count) {
        return count.rate >= all_but_best * highest->rate;
    });
}

// Halves the gaps beside the best number until no gap is left.
void refine(const Cluster& cluster, std::size_t node, Tried& tried) {
    for (bool refined = true; refined;) {
        refined = false;
        const auto best = best_of(tried);
        std::vector<std::int64_t> between;
        if (best != tried.begin())
            between.push_back((std::prev(best)->nodes + best->nodes) / 2);
        if (std::next(best) != tried.end())
            between.push_back((best->nodes + std::next(best)->nodes) / 2);
        for (std::int64_t count : between) {
            const auto place = std::lower_bound(
                tried.begin(), tried.end(), count, [](const NodeCount& a, std::int64_t b) {
                    return a.nodes < b;
                });
            if (place->nodes == count)
                continue;
            if (const auto result = try_count(cluster, node, count)) {
                tried.insert(place, *result);
                refined = true;
            }
        }
    }
}

void try_counts(const Cluster& cluster, NodeClassPlan& plan) {
    const NodeClass& node = cluster.nodes[plan.node];
    for (std::int64_t count : counts_to_try(cluster, node)) {
        const auto result = try_count(cluster, plan.node, count);
        if (!result)
            continue;
        plan.tried.push_back(*result);
        if (count == node.count + 1)
            plan.one_more = result;
    }
    const std::int64_t most = plan.tried.back().nodes;
    refine(cluster, plan.node, plan.tried);
    plan.best_nodes = best_of(plan.tried)->nodes;
    plan.still_pays = plan.best_nodes == most;
}

NodeClassPlan describe_class(const Cluster& cluster,
                             std::size_t node,
                             const PlannedUpdate& update) {
    NodeClassPlan plan;
    plan.node = node;
    double computed = 0;
    for (const RankGroup& group : update.groups) {
        if (group.node != node)
            continue;
        plan.least_units = plan.ranks == 0 ? group.units : std::min(plan.least_units, group.units);
        plan.most_units = std::max(plan.most_units, group.units);
        plan.ranks += group.ranks;
        plan.units += group.ranks * group.units;
        computed += static_cast<double>(group.ranks) * group.compute_ms;
    }
    plan.share = static_cast<double>(plan.units) / static_cast<double>(update.batch);
    if (plan.ranks > 0) {
        plan.compute_ms = computed / static_cast<double>(plan.ranks);
        plan.idle_ms = update.times.step_ms - plan.compute_ms -
                       cluster.devices[cluster.nodes[node].device].update_ms;
    }
    return plan;
}

}  // namespace

PlannedUpdate plan_update(const Cluster& cluster) {
    const std::vector<StepCost> costs = costs_of(cluster);
    PlannedUpdate update;
    update.ranks = cluster.ranks();
    for (const NodeClass& node : cluster.nodes)
        update.nodes += node.count;
    update.batch = cluster.batch();
    const std::int64_t capacity = capacity_of(costs, update.batch);
    if (capacity < update.batch)
        throw BadConfig(
            "the devices cannot take a batch of " + std::to_string(update.batch) + " units",
            "together they take " + std::to_string(capacity),
            "raise 'max-units' of a device, or lower the batch");
    update.groups = group_ranks(cluster, cut(costs, cluster.job.cut, update.batch));
    update.times = simulate_update(cluster, update.groups);
    update.bound_ms = bound_ms(costs, update.batch);
    update.efficiency = update.bound_ms / update.times.step_ms;
    update.rate = 1e3 * static_cast<double>(update.batch) / update.times.step_ms;
    return update;
}

ClusterPlan plan_cluster(const Cluster& cluster) {
    ClusterPlan plan{plan_update(cluster), {}};
    for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
        plan.classes.push_back(describe_class(cluster, node, plan.update));
        try_counts(cluster, plan.classes.back());
    }
    return plan;
}

}  // namespace hetseq
