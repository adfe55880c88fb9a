#include "hetseq/plan/all_reduce_time.hpp"

#include <algorithm>

#include "hetseq/util/all_reduce_scheme.hpp"

namespace hetseq {

namespace {

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
    const double latency_us = halving_levels(route.gpus) * route.intra.latency_us +
                              halving_levels(route.nodes) * route.inter.latency_us;
    return 2 * (std::max(inside, between) + latency_us / 1e3);
}

AllReduceScheme mpi_scheme(const Route& route, double bytes) {
    return all_reduce_scheme(static_cast<std::size_t>(bytes), route.ranks);
}

double doubling_ms(const Route& route, double bytes) {
    const auto gpus = static_cast<double>(route.gpus);
    return halving_levels(route.gpus) * route.intra.message_ms(bytes) +
           halving_levels(route.nodes) * route.inter.message_ms(gpus * bytes);
}

double direct_ms(const Route& route, double bytes) {
    const auto n = static_cast<double>(route.ranks);
    const auto gpus = static_cast<double>(route.gpus);
    double half = route.gpus > 1 ? route.intra.message_ms((n - 1) / n * bytes) : 0;
    if (route.nodes > 1)
        half = std::max(half, route.inter.message_ms(gpus * (n - gpus) / n * bytes));
    return 2 * half;
}

double hierarchical_ms(const Route& route, double bytes) {
    const auto gpus = static_cast<double>(route.gpus);
    const auto nodes = static_cast<double>(route.nodes);
    const double inside = route.gpus > 1 ? route.intra.message_ms((gpus - 1) / gpus * bytes) : 0;
    const double parts = static_cast<double>(halving_parts(route.nodes)) / nodes;
    const double between = Link{0, route.inter.bandwidth_gb}.message_ms(parts * bytes);
    return 2 * (inside + between + halving_levels(route.nodes) * route.inter.latency_us / 1e3);
}

double mpi_ms(const Route& route, double bytes) {
    switch (mpi_scheme(route, bytes)) {
        case AllReduceScheme::doubling:
            return doubling_ms(route, bytes);
        case AllReduceScheme::direct:
            return direct_ms(route, bytes);
        case AllReduceScheme::ring:
            return ring_ms(route, bytes);
        case AllReduceScheme::hierarchical:
            break;
    }
    return hierarchical_ms(route, bytes);
}

std::string name_of(AllReduceScheme scheme) {
    switch (scheme) {
        case AllReduceScheme::doubling:
            return "doubling";
        case AllReduceScheme::direct:
            return "direct";
        case AllReduceScheme::ring:
            return "ring";
        case AllReduceScheme::hierarchical:
            break;
    }
    return "hierarchical";
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
    switch (algorithm) {
        case AllReduceAlgorithm::ring:
            return ring_ms(route, bytes);
        case AllReduceAlgorithm::tree:
            return tree_ms(route, bytes);
        case AllReduceAlgorithm::mpi:
            break;
    }
    return mpi_ms(route, bytes);
}

AllReduceSteps all_reduce_steps(AllReduceAlgorithm algorithm, const Route& route, double bytes) {
    if (algorithm == AllReduceAlgorithm::tree)
        return {"tree", 2 * (halving_levels(route.gpus) + halving_levels(route.nodes))};
    const AllReduceScheme scheme =
        algorithm == AllReduceAlgorithm::ring ? AllReduceScheme::ring : mpi_scheme(route, bytes);
    return {name_of(scheme), all_reduce_steps(scheme, route.ranks, route.nodes, route.gpus)};
}

}  // namespace hetseq
