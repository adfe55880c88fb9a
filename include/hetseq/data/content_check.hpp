#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

class ShardSet;

/// Smallest and largest value of a field, both allowed.
struct ValueRange {
    std::int64_t minimum = 0;
    std::int64_t maximum = 0;
};

/// What `type` can hold.
ValueRange range_of(ElementType type);

/// What each field of `shards` may hold: its bounds, where set, within its type.
std::vector<ValueRange> allowed_ranges(const ShardSet& shards);

/// A value that is not allowed.
struct Violation {
    std::int64_t element = 0;  // its index
    std::int64_t value = 0;
};

/// The first element outside of `range`. `bytes`: elements of `type`.
std::optional<Violation> first_violation(std::span<const std::byte> bytes,
                                         ElementType type,
                                         const ValueRange& range);

/// A bad value's place in a file.
struct BadValue {
    std::int64_t row = 0;
    std::int64_t value = 0;
    bool is_signed = true;  // false: `value` has the bits of an unsigned one
};

/// Names file, dataset, row, value and what was expected.
BadData bad_value(const std::string& path,
                  const FieldSchema& field,
                  const BadValue& found,
                  const ValueRange& allowed);

/// Narrows int64 `values` that lie in the range of `type` to `type`.
void narrow(std::span<const std::int64_t> values, ElementType type, std::span<std::byte> result);

/// Sum, smallest and largest of the values seen so far.
struct ValueSummary {
    std::int64_t sum = 0;
    std::int64_t minimum = std::numeric_limits<std::int64_t>::max();
    std::int64_t maximum = std::numeric_limits<std::int64_t>::min();

    /// `bytes`: elements of `type`.
    void add(std::span<const std::byte> bytes, ElementType type);
};

}  // namespace hetseq
