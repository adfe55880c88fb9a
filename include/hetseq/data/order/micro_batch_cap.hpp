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

/// The smaller of both in each.
MicroBatchCap smaller(const MicroBatchCap& a, const MicroBatchCap& b);

/// Cuts `size` samples of one shape into micro-batches within the cap, as few and as even as they
/// can be. Empty for none.
std::vector<Slice> cut_into_micro_batches(std::int64_t size, const MicroBatchCap& cap);

/// Cuts samples of unequal length (`lengths`: of their longest rows) contiguously into
/// micro-batches within the cap, as few as they can be, the largest of them with as few padded
/// tokens as it can have. A sample that is longer than the cap stands alone.
std::vector<Slice> cut_into_micro_batches(std::span<const std::int64_t> lengths,
                                          const MicroBatchCap& cap);

/// Samples times the longest row, summed over the micro-batches.
std::int64_t padded_tokens(std::span<const std::int64_t> lengths, std::span<const Slice> cuts);

}  // namespace hetseq
