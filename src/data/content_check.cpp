#include "hetseq/data/content_check.hpp"

#include <algorithm>
#include <limits>

#include "hetseq/data/shard_set.hpp"

namespace hetseq {

namespace {

// Calls `function` with a value of the C++ type that `type` names.
template <class Function>
auto with_type(ElementType type, Function&& function) {
    switch (type) {
        case ElementType::uint8:
            return function(std::uint8_t{});
        case ElementType::int8:
            return function(std::int8_t{});
        case ElementType::int32:
            return function(std::int32_t{});
        case ElementType::int64:
            break;
    }
    return function(std::int64_t{});
}

template <class T>
std::span<const T> elements(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Min and max in one pass that compilers vectorise; the search for the culprit is rare.
template <class T>
std::optional<Violation> first_outside(std::span<const T> values, const ValueRange& range) {
    T low = std::numeric_limits<T>::max();
    T high = std::numeric_limits<T>::min();
    for (const T value : values) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    if (values.empty() || (low >= range.minimum && high <= range.maximum))
        return std::nullopt;
    const auto culprit = std::find_if(values.begin(), values.end(), [&](T value) {
        return value < range.minimum || value > range.maximum;
    });
    return Violation{culprit - values.begin(), static_cast<std::int64_t>(*culprit)};
}

// `row_length`: first dimension of the rows that `field.below_row_length_of` names.
ValueRange allowed_range(const FieldSchema& field, std::int64_t row_length) {
    ValueRange range = range_of(field.type);
    range.minimum = std::max(range.minimum, field.minimum.value_or(range.minimum));
    range.maximum = std::min(range.maximum, field.maximum.value_or(range.maximum));
    if (!field.below_row_length_of.empty())
        range.maximum = std::min(range.maximum, row_length - 1);
    return range;
}

}  // namespace

ValueRange range_of(ElementType type) {
    return with_type(type, [](auto zero) {
        using Limits = std::numeric_limits<decltype(zero)>;
        return ValueRange{static_cast<std::int64_t>(Limits::min()),
                          static_cast<std::int64_t>(Limits::max())};
    });
}

std::vector<ValueRange> allowed_ranges(const ShardSet& shards) {
    const auto& fields = shards.schema().fields;
    std::vector<ValueRange> ranges;
    for (const FieldSchema& field : fields) {
        std::int64_t row_length = 0;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].name == field.below_row_length_of && !shards.row_shape(i).empty())
                row_length = shards.row_shape(i).front();
        }
        ranges.push_back(allowed_range(field, row_length));
    }
    return ranges;
}

BadData bad_value(const std::string& path,
                  const FieldSchema& field,
                  const BadValue& found,
                  const ValueRange& allowed) {
    std::string expected =
        "expected " + std::to_string(allowed.minimum) + " to " + std::to_string(allowed.maximum);
    if (!field.meaning.empty())
        expected += ", " + field.meaning;
    return BadData(path + ": dataset '" + field.name + "', row " + std::to_string(found.row) +
                       ": value " +
                       (found.is_signed ? std::to_string(found.value)
                                        : std::to_string(static_cast<std::uint64_t>(found.value))),
                   expected,
                   "prepare the file anew, or use the model and options that it was made for");
}

std::optional<Violation> first_violation(std::span<const std::byte> bytes,
                                         ElementType type,
                                         const ValueRange& range) {
    return with_type(
        type, [&](auto zero) { return first_outside(elements<decltype(zero)>(bytes), range); });
}

void narrow(std::span<const std::int64_t> values, ElementType type, std::span<std::byte> result) {
    with_type(type, [&](auto zero) {
        using T = decltype(zero);
        std::transform(values.begin(),
                       values.end(),
                       reinterpret_cast<T*>(result.data()),
                       [](std::int64_t value) { return static_cast<T>(value); });
    });
}

void ValueSummary::add(std::span<const std::byte> bytes, ElementType type) {
    with_type(type, [&](auto zero) {
        for (const auto value : elements<decltype(zero)>(bytes)) {
            sum += value;
            minimum = std::min<std::int64_t>(minimum, value);
            maximum = std::max<std::int64_t>(maximum, value);
        }
    });
}

}  // namespace hetseq
