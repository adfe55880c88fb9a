#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/data/row_lengths.hpp"

namespace hetseq {

/// Samples of unequal length that are used together, in the order in which they are cut.
struct BatchItems {
    std::vector<std::int64_t> samples;  // of the corpus
    RowLengths lengths;
    std::vector<std::int64_t> units;  // by sample: what work is reported in, such as target tokens

    std::int64_t size() const noexcept { return std::ssize(samples); }
    std::int64_t total_units() const;
};

/// What one sample costs, in units of the work that one value of a row takes: the number of values
/// in all its rows, and for what grows with the square of a row's length (attention) `square` for
/// each value and value before or behind it.
struct ItemCost {
    double square = 0;  // >= 0

    /// Of each of `items`.
    std::vector<double> of(const BatchItems& items) const;
};

/// The longest row of each of `items`, over the ragged fields [values].
std::vector<std::int64_t> padded_lengths(const BatchItems& items);

}  // namespace hetseq
