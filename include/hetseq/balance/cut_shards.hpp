#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/util/owned_range.hpp"

namespace hetseq {

/// Cuts buckets of a flat tensor over ranks in proportion to `parts`, by rank: each >= 0, with a
/// sum > 0. `buckets[i]` are the lengths of bucket i's blocks in order; ranges end where blocks do.
/// Returns the ranges of all buckets in order, of elements counted from the first bucket's first.
/// None is empty or goes beyond its bucket.
///
/// Each bucket is cut, so that all ranks' links carry a part of each, and a bucket of fewer blocks
/// than ranks with a part goes whole to the rank that is furthest below its part. What one bucket
/// gives a rank too much or too little, the next ones make up for. A rank whose part is 0 owns
/// nothing. All arithmetic is exact: ranks on processors of any make compute the same.
std::vector<OwnedRange> cut_shards(std::span<const std::vector<std::int64_t>> buckets,
                                   std::span<const std::int64_t> parts);

}  // namespace hetseq
