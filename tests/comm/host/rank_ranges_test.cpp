#include "hetseq/comm/host/rank_ranges.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(RankRangesTest, RunsOfThreeAndMoreAreShortened) {
    EXPECT_EQ(rank_ranges({}), "");
    EXPECT_EQ(rank_ranges({4}), "4");
    EXPECT_EQ(rank_ranges({0, 1}), "0, 1");
    EXPECT_EQ(rank_ranges({0, 1, 2, 5, 7, 8}), "0-2, 5, 7, 8");
}

TEST(RankRangesTest, NamesOneAndSeveral) {
    EXPECT_EQ(name_ranks({3}), "rank 3");
    EXPECT_EQ(name_ranks({1, 2, 3}), "ranks 1-3");
}

}  // namespace
}  // namespace hetseq
