#pragma once

#include <cstddef>
#include <vector>

#include "hetseq/plan/cluster.hpp"
#include "hetseq/plan/memory_terms.hpp"

namespace hetseq {

/// What the memory of a rank on these nodes has to hold.
struct NodeClassMemory {
    std::size_t node = 0;  // of Cluster::nodes
    std::vector<MemoryTerm> terms;
    double has_mib = 0;

    bool fits() const { return sum_of(terms) <= has_mib; }
};

/// For the nodes whose device says how much memory it has, if the model's size is known; others are
/// left out. By memory, the state is in proportion to what `usable_memory` of a rank leaves; nodes
/// that do not say what they have hold none of it then.
std::vector<NodeClassMemory> plan_memory(const Cluster& cluster);

}  // namespace hetseq
