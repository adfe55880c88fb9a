#pragma once

#include <vector>

#include "hetseq/util/owned_range.hpp"

namespace hetseq {

/// Ranges of a tensor as a group of GPUs passes them on. The owner is the rank of the group that
/// has the values, by its place in the group. Neighbours of one owner are joined.
struct GroupRanges {
    std::vector<OwnedRange> own;          // those of the group's ranks, which have them
    std::vector<OwnedRange> to_members;   // those of its ranks but the first, which has them
    std::vector<OwnedRange> from_others;  // those of all other ranks; the first has them
};

/// Of `ranges`, which are owned by ranks of the job, for the `group` of these.
GroupRanges group_ranges(const std::vector<int>& group, const std::vector<OwnedRange>& ranges);

}  // namespace hetseq
