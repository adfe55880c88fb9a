#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

/// The most that one micro-batch of a rank may hold.
struct MicroBatchCap {
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    std::int64_t samples = none;
    std::int64_t tokens = none;  // padded: samples times the longest of their rows

    friend bool operator==(const MicroBatchCap&, const MicroBatchCap&) = default;
};

/// The smaller number of samples and the smaller number of tokens.
MicroBatchCap smaller(const MicroBatchCap& a, const MicroBatchCap& b);

/// Cuts `size` samples of one shape into as few micro-batches as the cap allows, as even as they
/// can be. Returns no slices for no samples.
std::vector<Slice> cut_into_micro_batches(std::int64_t size, const MicroBatchCap& cap);

/// Cuts samples of unequal length contiguously into as few micro-batches as the cap allows. The
/// largest of them then has as few padded tokens as it can have. `lengths` are the lengths of the
/// samples' longest rows. A sample that is longer than the cap stands alone.
std::vector<Slice> cut_into_micro_batches(std::span<const std::int64_t> lengths,
                                          const MicroBatchCap& cap);

/// The number of samples times the length of the longest row, summed over the micro-batches.
std::int64_t padded_tokens(std::span<const std::int64_t> lengths, std::span<const Slice> cuts);

}  // namespace hetseq
