#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/data/row_lengths.hpp"

namespace hetseq {

/// Samples of unequal length that are used together, in the order in which they are cut.
struct BatchItems {
    std::vector<std::int64_t> samples;  // of the corpus
    RowLengths lengths;
    std::vector<std::int64_t> units;  // by sample: work is reported in them, such as target tokens

    std::int64_t size() const noexcept { return std::ssize(samples); }
    std::int64_t total_units() const;
};

/// The cost of a sample. Its unit is the work that one value of a row takes. A row of n values
/// costs n + square * n^2; the second term is for work such as attention. A sample costs the sum
/// over its rows. Costs are whole numbers, found without rounding in floating point: each rank cuts
/// batches by them alone, and processors of different makes round differently.
struct ItemCost {
    static constexpr std::int64_t parts_of_a_unit = 1 << 16;

    double square = 0;  // >= 0; a multiple of 2^-32 counts

    /// The cost of each of `items`, in such parts of a unit.
    std::vector<std::int64_t> of(const BatchItems& items) const;
};

/// The length of the longest row of each of `items`, over the ragged fields [values].
std::vector<std::int64_t> padded_lengths(const BatchItems& items);

}  // namespace hetseq
