#include "layer_groups.hpp"

#include <algorithm>

namespace hetseq {

namespace {

// The search for cuts takes about the square of the layers, for each kind of workers. 1,024 ranks
// would take a minute for 52 layers.
constexpr std::int64_t few_ranks_to_compare = 64;
constexpr std::int64_t few_layers = 26;

std::int64_t groups_of(const Cluster& cluster, std::int64_t size) {
    std::int64_t groups = 0;
    for (const LayerClass& layer : cluster.layers)
        groups += (layer.count + size - 1) / size;
    return groups;
}

std::int64_t group_size(const Cluster& cluster) {
    if (cluster.ranks() <= few_ranks_to_compare)
        return 1;
    std::int64_t most = 1;
    for (const LayerClass& layer : cluster.layers)
        most = std::max(most, layer.count);
    std::int64_t size = 1;
    while (size < most && groups_of(cluster, size) > few_layers)
        ++size;
    return size;
}

}  // namespace

std::vector<LayerGroup> layer_groups(const Cluster& cluster) {
    const std::int64_t size = group_size(cluster);
    std::vector<LayerGroup> groups;
    for (const LayerClass& layer : cluster.layers)
        for (std::int64_t left = layer.count; left > 0; left -= size)
            groups.push_back({&layer, std::min(left, size)});
    return groups;
}

}  // namespace hetseq
