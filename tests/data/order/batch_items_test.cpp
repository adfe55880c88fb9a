#include "hetseq/data/order/batch_items.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

constexpr std::int64_t part = ItemCost::parts_of_a_unit;

BatchItems items(RowLengths lengths) {
    BatchItems items;
    items.samples.resize(lengths.front().size());
    items.lengths = std::move(lengths);
    return items;
}

TEST(ItemCostTest, IsTheSumOverRowsOfTheirLengthsAndSquares) {
    const BatchItems two_fields = items({{3, 0, 100}, {5, 7, 1}});

    EXPECT_THAT(ItemCost{}.of(two_fields), testing::ElementsAre(8 * part, 7 * part, 101 * part));
    EXPECT_THAT(
        ItemCost{0.25}.of(two_fields),
        testing::ElementsAre((32 + 34) * part / 4, (28 + 49) * part / 4, (404 + 10001) * part / 4));
}

// 0.1 is 429496730 / 2^32: by 49, rounded down to parts of a unit of 2^-16, that is 321126.
TEST(ItemCostTest, IsExactArithmeticOfWholeNumbers) {
    EXPECT_THAT(ItemCost{0.1}.of(items({{7}})), testing::ElementsAre(7 * part + 321126));
}

TEST(ItemCostTest, SumsDoNotOverflowHoweverLongRowsAre) {
    constexpr std::int32_t longest = 2147483647;

    for (const std::int64_t cost : ItemCost{1e6}.of(items({{longest, longest}, {longest, 1}}))) {
        EXPECT_GT(cost, 0);
        EXPECT_LE(cost, std::numeric_limits<std::int64_t>::max() / 2);
    }
}

}  // namespace
}  // namespace hetseq
