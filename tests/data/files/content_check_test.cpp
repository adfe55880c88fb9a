#include "hetseq/data/files/content_check.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {
namespace {

TEST(ContentCheckTest, FindsTheFirstValueOutside) {
    const std::vector<std::int32_t> values{0, 5, 10, -1, 11};

    const auto bytes = std::as_bytes(std::span{values});

    const auto high = first_violation(bytes, ElementType::int32, IntegerRange{-1, 9});
    const auto low = first_violation(bytes, ElementType::int32, IntegerRange{0, 10});
    const auto none = first_violation(bytes, ElementType::int32, IntegerRange{-1, 11});

    EXPECT_EQ(high->element, 2);
    EXPECT_EQ(number_text(high->value), "10");
    EXPECT_EQ(low->element, 3);
    EXPECT_EQ(number_text(low->value), "-1");
    EXPECT_FALSE(none.has_value());
}

TEST(ContentCheckTest, EmptyIsFine) {
    EXPECT_FALSE(first_violation({}, ElementType::uint8, IntegerRange{0, 0}).has_value());
    EXPECT_FALSE(first_violation({}, ElementType::float32, RealRange{0, 0}).has_value());
}

// `values` in the format of `type`.
std::vector<std::byte> stored(ElementType type, const std::vector<double>& values) {
    std::vector<std::byte> bytes(values.size() * size_of(type));
    narrow(std::as_bytes(std::span{values}), type, bytes);
    return bytes;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<ElementType> real_types{
    ElementType::float16, ElementType::float32, ElementType::float64};

// What `first_violation` must say: the same by comparisons of doubles, one after the other.
std::string slow_violation(const std::vector<double>& values, double minimum, double maximum) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] >= minimum && values[i] <= maximum))
            return std::to_string(i) + ": " + number_text(values[i]);
    }
    return "none";
}

std::string violation(ElementType type, const std::vector<double>& values, const RealRange& range) {
    const auto found = first_violation(stored(type, values), type, range);
    return found ? std::to_string(found->element) + ": " + number_text(found->value) : "none";
}

// All values are exact in each of the types.
TEST(ContentCheckTest, ComparesFloatingPointAsNumbers) {
    const std::vector<double> values{0, -0.0, 1, -1, 0.5, -0.5, 6.103515625e-05, -2048, 65504};
    for (const ElementType type : real_types) {
        for (const double a : values)
            for (const double minimum : values)
                for (const double maximum : values)
                    EXPECT_EQ(violation(type, {a}, {minimum, maximum}),
                              slow_violation({a}, minimum, maximum))
                        << a << " in [" << minimum << ", " << maximum << "]";
    }
}

TEST(ContentCheckTest, InfinitiesAndNansAreOutsideOfAllRanges) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const ElementType type : real_types) {
        const auto range = std::get<RealRange>(range_of(type));
        EXPECT_EQ(violation(type, {range.minimum, 0, range.maximum}, range), "none");
        EXPECT_EQ(violation(type, {1, infinity, nan}, range), "1: inf");
        EXPECT_EQ(violation(type, {1, 2, -infinity}, range), "2: -inf");
        EXPECT_EQ(violation(type, {1, nan, 2}, range), "1: nan");
        EXPECT_EQ(violation(type, {1, std::copysign(nan, -1), 2}, range).substr(0, 3), "1: ");
        EXPECT_EQ(violation(type, {infinity}, {-infinity, infinity}), "0: inf");
    }
}

// 0.1 as a float is more than 0.1 as a double.
TEST(ContentCheckTest, ABoundIsRoundedAsTheValuesAre) {
    for (const ElementType type : real_types) {
        EXPECT_EQ(violation(type, {0.1, 0.3}, {0.1, 0.3}), "none");
        EXPECT_NE(violation(type, {0.301}, {0.1, 0.3}), "none");
    }
}

TEST(ContentCheckTest, BooleansAreZeroOrOne) {
    const std::vector<std::uint8_t> values{0, 1, 2};

    const auto found = first_violation(
        std::as_bytes(std::span{values}), ElementType::boolean, range_of(ElementType::boolean));

    EXPECT_EQ(found->element, 2);
}

TEST(ContentCheckTest, SumsFloatingPoint) {
    for (const ElementType type : real_types) {
        ValueSummary summary = empty_summary(type);
        add_values(summary, stored(type, {0.5, -2, 4}), type);
        add_values(summary, stored(type, {1}), type);

        const auto& sums = std::get<SumAndBounds<double>>(summary);
        EXPECT_EQ(sums.sum, 3.5);
        EXPECT_EQ(sums.minimum, -2);
        EXPECT_EQ(sums.maximum, 4);
    }
}

TEST(ContentCheckTest, BytesAreUnsignedAndCharsSigned) {
    const std::vector<std::uint8_t> values{255};

    ValueSummary bytes = empty_summary(ElementType::uint8);
    add_values(bytes, std::as_bytes(std::span{values}), ElementType::uint8);
    ValueSummary chars = empty_summary(ElementType::int8);
    add_values(chars, std::as_bytes(std::span{values}), ElementType::int8);

    EXPECT_EQ(std::get<SumAndBounds<std::int64_t>>(bytes).sum, 255);
    EXPECT_EQ(std::get<SumAndBounds<std::int64_t>>(chars).sum, -1);
    EXPECT_EQ(std::get<SumAndBounds<std::int64_t>>(chars).minimum, -1);
    EXPECT_EQ(std::get<SumAndBounds<std::int64_t>>(chars).maximum, -1);
}

TEST(ContentCheckTest, AllowedRangeIsTheBoundsWithinTheType) {
    const CorpusSchema schema{
        "test",
        {{.name = "ids", .rank = 2, .type = ElementType::int32, .row_shape = {-1}, .minimum = 3},
         {.name = "positions",
          .rank = 2,
          .type = ElementType::uint8,
          .row_shape = {-1},
          .below_row_length_of = "ids"},
         {.name = "weights", .type = ElementType::float32, .minimum = 0.25},
         {.name = "halves", .type = ElementType::int8, .minimum = -1.5, .maximum = 1e300}}};
    const ShardHeader header{1,
                             {{{4, true}, {16}, 0},
                              {{1, false}, {2}, 0},
                              {{4, true, StoredKind::real}, {}, 0},
                              {{1, true}, {}, 0}}};

    const auto ranges = allowed_ranges(ShardSet({{"one.h5", header, {}, 0}}, schema));

    EXPECT_EQ(std::get<IntegerRange>(ranges[0]).minimum, 3);
    EXPECT_EQ(std::get<IntegerRange>(ranges[0]).maximum, 2147483647);
    EXPECT_EQ(std::get<IntegerRange>(ranges[1]).minimum, 0);
    EXPECT_EQ(std::get<IntegerRange>(ranges[1]).maximum, 15);
    EXPECT_EQ(std::get<RealRange>(ranges[2]).minimum, 0.25);
    EXPECT_EQ(std::get<RealRange>(ranges[2]).maximum, std::numeric_limits<float>::max());
    EXPECT_EQ(std::get<IntegerRange>(ranges[3]).minimum, -1);
    EXPECT_EQ(std::get<IntegerRange>(ranges[3]).maximum, 127);
}

}  // namespace
}  // namespace hetseq
