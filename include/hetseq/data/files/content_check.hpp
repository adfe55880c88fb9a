#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/data/hdf5/exact_number.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

class ShardSet;

/// The smallest and the largest value that a field of integers or booleans may hold.
struct IntegerRange {
    std::int64_t minimum = 0;
    std::int64_t maximum = 0;
};

/// The smallest and the largest value that a field of floating point may hold; both are finite.
struct RealRange {
    double minimum = 0;
    double maximum = 0;
};

using ValueRange = std::variant<IntegerRange, RealRange>;

/// All values that `type` can hold; for floating point, all finite ones.
ValueRange range_of(ElementType type);

/// The values that each field of `shards` may hold, by its type and its bounds. Bounds by the
/// lengths of ragged rows are left out.
std::vector<ValueRange> allowed_ranges(const ShardSet& shards);

/// The values of `range` that are below `row_length`.
ValueRange below_length(const ValueRange& range, std::int64_t row_length);

/// A value that is not allowed.
struct Violation {
    std::int64_t element = 0;  // its index
    Number value;
};

/// The first element outside of `range`, which is of `type`'s kind. `bytes`: elements of `type`.
std::optional<Violation> first_violation(std::span<const std::byte> bytes,
                                         ElementType type,
                                         const ValueRange& range);

/// A bad value's place in a file.
struct BadValue {
    std::int64_t row = 0;
    Number value;
    bool is_signed = true;  // false: an integer `value` has the bits of an unsigned one
};

/// Names file, dataset, row, value and what was expected.
BadData bad_value(const std::string& path,
                  const FieldSchema& field,
                  const BadValue& found,
                  const ValueRange& allowed);

/// Narrows `wide`, elements of int64 or float64 that lie in the range of `type`, to `type`.
void narrow(std::span<const std::byte> wide, ElementType type, std::span<std::byte> result);

/// The sum, the smallest and the largest of the values seen so far.
template <class T>
struct SumAndBounds {
    T sum = 0;
    T minimum = std::numeric_limits<T>::max();
    T maximum = std::numeric_limits<T>::lowest();
};
using ValueSummary = std::variant<SumAndBounds<std::int64_t>, SumAndBounds<double>>;

/// The summary of no values, of `type`.
ValueSummary empty_summary(ElementType type);
/// `bytes`: elements of `type`.
void add_values(ValueSummary& summary, std::span<const std::byte> bytes, ElementType type);

}  // namespace hetseq
