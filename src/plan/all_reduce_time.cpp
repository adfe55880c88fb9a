#include "hetseq/plan/all_reduce_time.hpp"

#include <algorithm>

namespace hetseq {

namespace {

Link slower(const Link& a, const Link& b) {
    return {std::max(a.latency_us, b.latency_us), std::min(a.bandwidth_gb, b.bandwidth_gb)};
}

// ceil(log2(n)), n >= 1
int levels(std::int64_t n) {
    int count = 0;
    for (std::int64_t reached = 1; reached < n; reached *= 2)
        ++count;
    return count;
}

double ring_ms(const Route& route, double bytes) {
    const auto n = static_cast<double>(route.ranks);
    double step = route.gpus > 1 ? route.intra.message_ms(bytes / n) : 0;
    if (route.nodes > 1)
        step = std::max(step, route.inter.message_ms(bytes / n));
    return 2 * (n - 1) * step;
}

double tree_ms(const Route& route, double bytes) {
    const double inside = route.gpus > 1 ? Link{0, route.intra.bandwidth_gb}.message_ms(bytes) : 0;
    const double between =
        route.nodes > 1 ? Link{0, route.inter.bandwidth_gb}.message_ms(bytes) : 0;
    const double latency_us =
        levels(route.gpus) * route.intra.latency_us + levels(route.nodes) * route.inter.latency_us;
    return 2 * (std::max(inside, between) + latency_us / 1e3);
}

}  // namespace

Route route_over(const Cluster& cluster) {
    Route route;
    for (const NodeClass& node : cluster.nodes) {
        if (node.count == 0)
            continue;
        const Link intra = node.intra.value_or(cluster.network.intra);
        const Link inter = node.inter.value_or(cluster.network.inter);
        if (node.gpus > 1)
            route.intra = slower(route.intra, intra);
        route.inter = slower(route.inter, inter);
        route.ranks += node.gpus * node.count;
        route.nodes += node.count;
        route.gpus = std::max(route.gpus, node.gpus);
    }
    return route;
}

double all_reduce_ms(AllReduceAlgorithm algorithm, const Route& route, double bytes) {
    if (route.ranks <= 1)
        return 0;
    return algorithm == AllReduceAlgorithm::ring ? ring_ms(route, bytes) : tree_ms(route, bytes);
}

}  // namespace hetseq
