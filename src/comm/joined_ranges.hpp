#pragma once

#include <vector>

#include "hetseq/util/owned_range.hpp"

namespace hetseq {

/// Adds `range` to `ranges`: as a part of the last one where that has its owner and ends where it
/// begins. One without elements is left out.
inline void add_joined(std::vector<OwnedRange>& ranges, const OwnedRange& range) {
    if (range.length == 0)
        return;
    if (!ranges.empty() && ranges.back().owner == range.owner &&
        ranges.back().begin + ranges.back().length == range.begin)
        ranges.back().length += range.length;
    else
        ranges.push_back(range);
}

}  // namespace hetseq
