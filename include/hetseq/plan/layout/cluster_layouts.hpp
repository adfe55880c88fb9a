#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"
#include "hetseq/balance/layout/plan_workers.hpp"
#include "hetseq/plan/cluster.hpp"

namespace hetseq {

/// The most ranks whose layouts are compared.
constexpr std::int64_t most_compared_ranks = 2048;

/// Ranks are numbered node by node, in the order of the description.
struct PlannedRank {
    std::size_t node = 0;  // of Cluster::nodes
    int host = 0;
};
std::vector<PlannedRank> planned_ranks(const Cluster& cluster);

/// The described model, ranks and links, for `compare_layouts`. `cluster` has layers, was filled
/// from them, and outlives the result. Classes are the devices in use, in their order. A device
/// that says no memory has enough. Spread, limits of a device's units, and 'inter-update-ms' have
/// no part. Throws BadConfig for a batch that no micro-batch divides, for more ranks than
/// `most_compared_ranks`, and for an update of more than 10^9 ms.
LayoutProblem layout_problem(const Cluster& cluster);

/// `compare_layouts` of these; none where no layers are described. Stages are of layers. Above 64
/// ranks and 26 layers, like layers are cut in groups.
std::vector<LayoutPlan> plan_layouts(const Cluster& cluster);

}  // namespace hetseq
