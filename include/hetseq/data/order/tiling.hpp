#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

/// Shows whether the ranks' slices of a batch tile it, so that every sample is used once. Each rank
/// tells how many samples its slice has, and the difference of hashes of its two borders; one rank
/// takes away those of the whole batch. Added up over all ranks, both are 0 (modulo 2^38) if one
/// slice begins where another one ends and all ranks have the same samples there. A hash depends on
/// the batch, the border and the sample behind it.
class Tiling {
public:
    static constexpr std::size_t terms = 2;

    /// Of a rank that has no slice: nothing is shown then.
    Tiling() = default;
    /// `takes_away`: true on one of the ranks.
    Tiling(const GlobalBatch& batch, const Slice& slice, bool takes_away);

    /// Adds another batch's, for one check of both.
    void add(const Tiling& other);
    /// To be summed over ranks. Whole numbers: their sums over 2^15 ranks are exact.
    std::array<double, terms> values() const;
    /// Whether slices tile whose `values` have these sums.
    static bool holds(std::span<const double> sums);

private:
    std::uint64_t samples_ = 0;
    std::uint64_t borders_ = 0;
};

/// The hash of a border of a slice of `batch`, 0 <= hash < 2^38.
std::int64_t border_hash(const GlobalBatch& batch, std::int64_t border);

}  // namespace hetseq
