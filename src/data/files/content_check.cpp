#include "hetseq/data/files/content_check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/hdf5/float16.hpp"

namespace hetseq {

namespace {

// A floating-point number as it lies in memory: `bits` in the format `Real`.
struct Float16 {
    using Bits = std::int16_t;
    static double value(Bits bits) { return float16_value(static_cast<std::uint16_t>(bits)); }
    static Bits bits(double value) { return static_cast<Bits>(float16_bits(value)); }
    static constexpr double largest = largest_float16;
};
struct Float32 {
    using Bits = std::int32_t;
    static double value(Bits bits) { return std::bit_cast<float>(bits); }
    static Bits bits(double value) { return std::bit_cast<Bits>(static_cast<float>(value)); }
    static constexpr double largest = std::numeric_limits<float>::max();
};
struct Float64 {
    using Bits = std::int64_t;
    static double value(Bits bits) { return std::bit_cast<double>(bits); }
    static Bits bits(double value) { return std::bit_cast<Bits>(value); }
    static constexpr double largest = std::numeric_limits<double>::max();
};

// Calls `function` with a value of the C++ type that `type` names, a type of integers or booleans.
template <class Function>
auto with_integer(ElementType type, Function&& function) {
    switch (type) {
        case ElementType::uint8:
        case ElementType::boolean:
            return function(std::uint8_t{});
        case ElementType::int8:
            return function(std::int8_t{});
        case ElementType::int32:
            return function(std::int32_t{});
        default:
            return function(std::int64_t{});
    }
}

// Calls `function` with the format that `type` names, a type of floating point.
template <class Function>
auto with_format(ElementType type, Function&& function) {
    switch (type) {
        case ElementType::float16:
            return function(Float16{});
        case ElementType::float32:
            return function(Float32{});
        default:
            return function(Float64{});
    }
}

template <class T>
std::span<const T> elements(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

struct Identity {
    template <class T>
    T operator()(T value) const {
        return value;
    }
};

// Turns the bits of a floating-point number into an integer. The integers have the same order as
// the numbers. Infinities and NaNs of either sign lie beyond all finite values.
struct OrderOfBits {
    template <class Bits>
    Bits operator()(Bits bits) const {
        const Bits sign = static_cast<Bits>(bits >> (8 * sizeof(Bits) - 1));
        return static_cast<Bits>(bits ^ (sign & std::numeric_limits<Bits>::max()));
    }
};

// The first of `values` whose key is outside of [`least`, `most`]. One pass, which compilers
// vectorise, finds the smallest and the largest key. A search for the bad value is rare.
template <class T, class Key>
std::optional<std::int64_t> first_outside(std::span<const T> values,
                                          std::int64_t least,
                                          std::int64_t most,
                                          Key key) {
    T low = std::numeric_limits<T>::max();
    T high = std::numeric_limits<T>::min();
    for (const T value : values) {
        low = std::min<T>(low, key(value));
        high = std::max<T>(high, key(value));
    }
    if (values.empty() || (low >= least && high <= most))
        return std::nullopt;
    const auto culprit = std::find_if(values.begin(), values.end(), [&](T value) {
        return key(value) < least || key(value) > most;
    });
    return culprit - values.begin();
}

std::optional<Violation> first_bad_integer(std::span<const std::byte> bytes,
                                           ElementType type,
                                           const IntegerRange& range) {
    return with_integer(type, [&](auto zero) -> std::optional<Violation> {
        const auto values = elements<decltype(zero)>(bytes);
        const auto place = first_outside(values, range.minimum, range.maximum, Identity{});
        if (!place)
            return std::nullopt;
        return Violation{*place, std::int64_t{values[static_cast<std::size_t>(*place)]}};
    });
}

// A bound is rounded to the format, as the values were. If the smallest value is 0, -0 may pass
// too.
std::optional<Violation> first_bad_real(std::span<const std::byte> bytes,
                                        ElementType type,
                                        const RealRange& range) {
    return with_format(type, [&](auto format) -> std::optional<Violation> {
        using Format = decltype(format);
        const auto values = elements<typename Format::Bits>(bytes);
        const OrderOfBits order;
        const auto key = [&](double bound) {
            return order(Format::bits(std::clamp(bound, -Format::largest, Format::largest)));
        };
        const auto least = key(range.minimum == 0 ? -0.0 : range.minimum);
        const auto most = key(range.maximum == 0 ? 0.0 : range.maximum);
        const auto place = first_outside(values, least, most, order);
        if (!place)
            return std::nullopt;
        return Violation{*place, Format::value(values[static_cast<std::size_t>(*place)])};
    });
}

// `bound` as an integer. No integer holds 2^63 or more, so these become the largest one.
std::int64_t integer_bound(double bound) {
    constexpr double limit = 9223372036854775808.0;  // 2^63
    if (bound >= limit)
        return std::numeric_limits<std::int64_t>::max();
    return bound < -limit ? std::numeric_limits<std::int64_t>::min()
                          : static_cast<std::int64_t>(bound);
}

IntegerRange within(IntegerRange range, double minimum, double maximum) {
    return {std::max(range.minimum, integer_bound(std::ceil(minimum))),
            std::min(range.maximum, integer_bound(std::floor(maximum)))};
}

RealRange within(RealRange range, double minimum, double maximum) {
    return {std::max(range.minimum, minimum), std::min(range.maximum, maximum)};
}

ValueRange allowed_range(const FieldSchema& field) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return std::visit(
        [&](auto range) -> ValueRange {
            return within(
                range, field.minimum.value_or(-infinity), field.maximum.value_or(infinity));
        },
        range_of(field.type));
}

std::string value_text(const BadValue& found) {
    if (found.is_signed || !std::holds_alternative<std::int64_t>(found.value))
        return number_text(found.value);
    return std::to_string(static_cast<std::uint64_t>(std::get<std::int64_t>(found.value)));
}

std::string expected_text(const FieldSchema& field,
                          const BadValue& found,
                          const ValueRange& allowed) {
    if (const auto* integers = std::get_if<IntegerRange>(&allowed))
        return std::to_string(integers->minimum) + " to " + std::to_string(integers->maximum);
    const auto& reals = std::get<RealRange>(allowed);
    const bool has_bounds = field.minimum || field.maximum || !field.below_row_length_of.empty();
    if (!has_bounds && !std::isfinite(std::get<double>(found.value)))
        return "a finite number";
    return number_text(reals.minimum) + " to " + number_text(reals.maximum);
}

}  // namespace

ValueRange range_of(ElementType type) {
    if (is_real(type))
        return with_format(type, [](auto format) -> ValueRange {
            return RealRange{-format.largest, format.largest};
        });
    if (type == ElementType::boolean)
        return IntegerRange{0, 1};
    return with_integer(type, [](auto zero) -> ValueRange {
        using Limits = std::numeric_limits<decltype(zero)>;
        return IntegerRange{Limits::min(), Limits::max()};
    });
}

std::vector<ValueRange> allowed_ranges(const ShardSet& shards) {
    std::vector<ValueRange> ranges;
    for (const FieldSchema& field : shards.schema().fields) {
        ValueRange range = allowed_range(field);
        const auto longer = find_field(shards.schema(), field.below_row_length_of);
        const bool is_bound = !field.below_row_length_of.empty() &&
                              !(longer && shards.schema().fields[*longer].is_ragged);
        if (is_bound) {
            const bool has_length = longer && !shards.row_shape(*longer).empty();
            range = below_length(range, has_length ? shards.row_shape(*longer).front() : 0);
        }
        ranges.push_back(range);
    }
    return ranges;
}

ValueRange below_length(const ValueRange& range, std::int64_t row_length) {
    return std::visit(
        [&](auto bounds) -> ValueRange {
            return within(bounds,
                          -std::numeric_limits<double>::infinity(),
                          static_cast<double>(row_length - 1));
        },
        range);
}

BadData bad_value(const std::string& path,
                  const FieldSchema& field,
                  const BadValue& found,
                  const ValueRange& allowed) {
    std::string expected = "expected " + expected_text(field, found, allowed);
    if (!field.meaning.empty())
        expected += ", " + field.meaning;
    return BadData(path + ": dataset '" + field.name + "', row " + std::to_string(found.row) +
                       ": value " + value_text(found),
                   expected,
                   "prepare the file anew, or use the model and options that it was made for");
}

std::optional<Violation> first_violation(std::span<const std::byte> bytes,
                                         ElementType type,
                                         const ValueRange& range) {
    return is_real(type) ? first_bad_real(bytes, type, std::get<RealRange>(range))
                         : first_bad_integer(bytes, type, std::get<IntegerRange>(range));
}

void narrow(std::span<const std::byte> wide, ElementType type, std::span<std::byte> result) {
    if (is_real(type)) {
        const auto values = elements<double>(wide);
        with_format(type, [&](auto format) {
            using Bits = typename decltype(format)::Bits;
            std::transform(values.begin(),
                           values.end(),
                           reinterpret_cast<Bits*>(result.data()),
                           [&](double value) { return format.bits(value); });
        });
        return;
    }
    const auto values = elements<std::int64_t>(wide);
    with_integer(type, [&](auto zero) {
        using T = decltype(zero);
        std::transform(values.begin(),
                       values.end(),
                       reinterpret_cast<T*>(result.data()),
                       [](std::int64_t value) { return static_cast<T>(value); });
    });
}

ValueSummary empty_summary(ElementType type) {
    if (is_real(type))
        return SumAndBounds<double>{};
    return SumAndBounds<std::int64_t>{};
}

void add_values(ValueSummary& summary, std::span<const std::byte> bytes, ElementType type) {
    const auto add = [](auto& sums, auto value) {
        sums.sum += value;
        sums.minimum = std::min<decltype(sums.sum)>(sums.minimum, value);
        sums.maximum = std::max<decltype(sums.sum)>(sums.maximum, value);
    };
    if (is_real(type))
        with_format(type, [&](auto format) {
            for (const auto bits : elements<typename decltype(format)::Bits>(bytes))
                add(std::get<SumAndBounds<double>>(summary), format.value(bits));
        });
    else
        with_integer(type, [&](auto zero) {
            for (const auto value : elements<decltype(zero)>(bytes))
                add(std::get<SumAndBounds<std::int64_t>>(summary), value);
        });
}

}  // namespace hetseq
