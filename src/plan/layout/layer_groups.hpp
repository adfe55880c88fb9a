#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetseq/plan/cluster.hpp"

namespace hetseq {

/// Like layers, one after the other, that no cut parts.
struct LayerGroup {
    const LayerClass* layer = nullptr;  // of the cluster
    std::int64_t count = 1;
};

/// All layers in their order, each alone. Of more than 64 ranks and 26 layers, like ones in the
/// smallest groups of one size that are 26 or fewer; those of most layers where there are more
/// kinds.
std::vector<LayerGroup> layer_groups(const Cluster& cluster);

}  // namespace hetseq
