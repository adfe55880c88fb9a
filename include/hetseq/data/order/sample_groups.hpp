#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"

namespace hetseq {

/// The groups that n samples of a batch make, for a model that looks at several samples together
/// (ghost batch normalisation: Hoffer, Hubara & Soudry 2017, "Train longer, generalize better",
/// section 4): K = max(1, floor(n / size)) of them, and sample i is in group floor(i K / n). Sizes
/// differ by at most one. They depend on the batch alone, and no cut divides one.
std::vector<Slice> groups_of(std::int64_t samples, std::int64_t size);

/// The most samples that one of them has.
std::int64_t largest_group(std::int64_t samples, std::int64_t size);

/// Cuts samples into micro-batches of whole `groups`, which lie end to end: as few as the cap
/// allows, as even as they can be where all samples have one shape. `lengths`: of the samples'
/// longest rows; empty: rows of one shape. A group that is larger than the cap stands alone.
std::vector<Slice> cut_groups(std::span<const Slice> groups,
                              std::span<const std::int64_t> lengths,
                              const MicroBatchCap& cap);

}  // namespace hetseq
