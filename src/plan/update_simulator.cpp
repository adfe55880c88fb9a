#include "hetseq/plan/update_simulator.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/error.hpp"
#include "hetseq/plan/slowest_rank.hpp"

namespace hetseq {

namespace {

// The time at which a bucket is ready is almost linear in its place, so it is interpolated between
// this many places.
constexpr std::size_t most_places = 9;

struct Bucket {
    double ready = 0;      // the part of the backward after which its gradients are there
    double reduce_ms = 0;  // its all-reduce
};

std::vector<Bucket> make_buckets(const Cluster& cluster, const Route& route) {
    const double whole = cluster.model.bytes;
    const double full = cluster.model.bucket_mib * bytes_of_mib;
    const auto count = static_cast<std::size_t>(std::ceil(whole / full));
    const double full_ms = all_reduce_ms(cluster.network.algorithm, route, full);
    std::vector<Bucket> buckets(count);
    for (std::size_t k = 0; k < count; ++k)
        buckets[k] = {std::min(1.0, static_cast<double>(k + 1) * full / whole), full_ms};
    if (count > 0) {
        const double rest = whole - static_cast<double>(count - 1) * full;
        buckets.back().reduce_ms = all_reduce_ms(cluster.network.algorithm, route, rest);
    }
    return buckets;
}

// When the slowest rank has done the part `done` of its last backward.
double slowest_at(std::span<const RankGroup> groups, double done, double spread, double quantile) {
    std::vector<LikeRanks> times;
    for (const RankGroup& group : groups)
        times.push_back({group.ranks, group.compute_ms - (1 - done) * group.backward_ms});
    return slowest_ms(times, spread, quantile);
}

// The same at 0, 1/8, ... 1.
std::vector<double> readiness(std::span<const RankGroup> groups, double spread, double quantile) {
    std::vector<double> times(most_places);
    for (std::size_t i = 0; i < most_places; ++i)
        times[i] = slowest_at(groups, static_cast<double>(i) / (most_places - 1), spread, quantile);
    return times;
}

double interpolate(const std::vector<double>& times, double place) {
    const double position = place * static_cast<double>(times.size() - 1);
    const auto below = std::min(static_cast<std::size_t>(position), times.size() - 2);
    return std::lerp(times[below], times[below + 1], position - static_cast<double>(below));
}

// The end of the last bucket.
double last_event(const std::vector<Bucket>& buckets, const std::vector<double>& ready) {
    double reduced = 0;
    for (const Bucket& bucket : buckets) {
        const double start = std::max(reduced, interpolate(ready, bucket.ready));
        reduced = start + bucket.reduce_ms;
    }
    return std::max(ready.back(), reduced);
}

double largest_update_ms(const Cluster& cluster) {
    double largest = 0;
    for (const NodeClass& node : cluster.nodes)
        if (node.count > 0)
            largest = std::max(largest, cluster.devices[node.device].update_ms);
    return largest;
}

RankGroup make_group(const Cluster& cluster, std::size_t node, std::int64_t units) {
    const StepCost& cost = cluster.devices[cluster.nodes[node].device].cost;
    RankGroup group{.node = node, .ranks = 1, .units = units};
    if (units == 0)
        return group;
    const auto micro_batches =
        static_cast<double>((units + cost.micro_batch - 1) / cost.micro_batch);
    group.compute_ms = cost.time_ms(units);
    group.backward_ms =
        cluster.model.backward_fraction * (group.compute_ms - cost.fixed_ms()) / micro_batches;
    return group;
}

}  // namespace

std::vector<RankGroup> group_ranks(const Cluster& cluster,
                                   std::span<const std::int64_t> allocation) {
    HETSEQ_ASSERT(static_cast<std::int64_t>(allocation.size()) == cluster.ranks());
    std::vector<RankGroup> groups;
    auto share = allocation.begin();
    for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
        const std::int64_t ranks = cluster.nodes[node].count * cluster.nodes[node].gpus;
        std::vector<std::int64_t> shares(share, share + ranks);
        share += ranks;
        std::sort(shares.begin(), shares.end());
        const std::size_t first = groups.size();
        for (std::int64_t units : shares) {
            if (groups.size() > first && groups.back().units == units)
                ++groups.back().ranks;
            else
                groups.push_back(make_group(cluster, node, units));
        }
    }
    return groups;
}

UpdateTimes simulate_update(const Cluster& cluster, std::span<const RankGroup> groups) {
    const double spread = cluster.job.spread;
    const Route route = route_over(cluster);
    const std::vector<Bucket> buckets = make_buckets(cluster, route);
    UpdateTimes times;
    double computed = 0;
    double reduced = 0;
    for (const QuadraturePoint& point : quadrature_points(spread)) {
        const auto ready = readiness(groups, spread, point.quantile);
        computed += point.weight * ready.back();
        reduced += point.weight * last_event(buckets, ready);
    }
    for (const RankGroup& group : groups)
        times.compute_ms = std::max(times.compute_ms, group.compute_ms);
    for (const Bucket& bucket : buckets)
        times.reduce_ms += bucket.reduce_ms;
    times.spread_ms = computed - times.compute_ms;
    times.exposed_ms = reduced - computed;
    if (route.nodes > 1)
        times.exposed_ms += cluster.network.inter_update_ms;
    times.update_ms = largest_update_ms(cluster);
    times.step_ms = times.compute_ms + times.spread_ms + times.exposed_ms + times.update_ms;
    return times;
}

}  // namespace hetseq
