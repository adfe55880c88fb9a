#include "hetseq/train/record/statistics.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(SpreadTest, InterpolatesBetweenOrderStatistics) {
    const Spread spread = spread_of({4, 1, 3, 2});

    EXPECT_DOUBLE_EQ(spread.median, 2.5);
    EXPECT_DOUBLE_EQ(spread.p10, 1.3);
    EXPECT_DOUBLE_EQ(spread.p90, 3.7);
}

TEST(SpreadTest, OfNothingIsZero) {
    EXPECT_EQ(spread_of({}).median, 0);
}

}  // namespace
}  // namespace hetseq
