#include "hetseq/data/content_check.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/shard_set.hpp"

namespace hetseq {
namespace {

TEST(ContentCheckTest, FindsTheFirstValueOutside) {
    const std::vector<std::int32_t> values{0, 5, 10, -1, 11};

    const auto high =
        first_violation(std::as_bytes(std::span{values}), ElementType::int32, {-1, 9});
    const auto low = first_violation(std::as_bytes(std::span{values}), ElementType::int32, {0, 10});
    const auto none =
        first_violation(std::as_bytes(std::span{values}), ElementType::int32, {-1, 11});

    EXPECT_EQ(high->element, 2);
    EXPECT_EQ(high->value, 10);
    EXPECT_EQ(low->element, 3);
    EXPECT_EQ(low->value, -1);
    EXPECT_FALSE(none.has_value());
}

TEST(ContentCheckTest, EmptyIsFine) {
    EXPECT_FALSE(first_violation({}, ElementType::uint8, {0, 0}).has_value());
}

TEST(ContentCheckTest, BytesAreUnsignedAndCharsSigned) {
    const std::vector<std::uint8_t> values{255};

    ValueSummary bytes;
    bytes.add(std::as_bytes(std::span{values}), ElementType::uint8);
    ValueSummary chars;
    chars.add(std::as_bytes(std::span{values}), ElementType::int8);

    EXPECT_EQ(bytes.sum, 255);
    EXPECT_EQ(chars.sum, -1);
    EXPECT_EQ(chars.minimum, -1);
    EXPECT_EQ(chars.maximum, -1);
}

TEST(ContentCheckTest, AllowedRangeIsTheBoundsWithinTheType) {
    const CorpusSchema schema{
        "test",
        {{.name = "ids", .rank = 2, .type = ElementType::int32, .row_shape = {-1}, .minimum = 3},
         {.name = "positions",
          .rank = 2,
          .type = ElementType::uint8,
          .row_shape = {-1},
          .below_row_length_of = "ids"}}};
    const ShardHeader header{1, {{{4, true}, {16}, 0}, {{1, false}, {2}, 0}}};

    const auto ranges = allowed_ranges(ShardSet({{"one.h5", header, {}, 0}}, schema));

    EXPECT_EQ(ranges[0].minimum, 3);
    EXPECT_EQ(ranges[0].maximum, 2147483647);
    EXPECT_EQ(ranges[1].minimum, 0);
    EXPECT_EQ(ranges[1].maximum, 15);
}

}  // namespace
}  // namespace hetseq
