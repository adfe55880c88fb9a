#include "hetseq/balance/divide_items.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using Shares = std::vector<std::int64_t>;

// The largest ratio of items to share.
double worst(const Shares& shares, const std::vector<std::int64_t>& counts) {
    double ratio = 0;
    for (std::size_t r = 0; r < shares.size(); ++r)
        if (counts[r] > 0)
            ratio =
                std::max(ratio, static_cast<double>(counts[r]) / static_cast<double>(shares[r]));
    return ratio;
}

// Of all ways to divide the items over ranks with a share.
double least_worst(const Shares& shares,
                   std::int64_t items,
                   std::size_t rank,
                   std::vector<std::int64_t>& counts) {
    if (rank + 1 == shares.size()) {
        counts[rank] = items;
        return shares[rank] == 0 && items > 0 ? 1e300 : worst(shares, counts);
    }
    double least = 1e300;
    for (std::int64_t count = 0; count <= (shares[rank] > 0 ? items : 0); ++count) {
        counts[rank] = count;
        least = std::min(least, least_worst(shares, items - count, rank + 1, counts));
    }
    return least;
}

TEST(DivideItemsTest, FollowsSharesThatComeOutEven) {
    EXPECT_THAT(divide_items(Shares{40, 0, 20, 4}, 16), testing::ElementsAre(10, 0, 5, 1));
    EXPECT_THAT(divide_items(Shares{1}, 5), testing::ElementsAre(5));
    EXPECT_THAT(divide_items(Shares{3, 2}, 0), testing::ElementsAre(0, 0));
}

TEST(DivideItemsTest, ASmallShareIsNotOverloaded) {
    // 12.8 and 3.2 of 16: a fourth group would be a quarter too many for the second.
    EXPECT_THAT(divide_items(Shares{410, 102}, 16), testing::ElementsAre(13, 3));
    EXPECT_THAT(divide_items(Shares{350, 100}, 9), testing::ElementsAre(7, 2));
    EXPECT_THAT(divide_items(Shares{380, 100}, 5), testing::ElementsAre(4, 1));
}

TEST(DivideItemsTest, IsTheBestOfAllWays) {
    std::mt19937 random{7};
    for (int trial = 0; trial < 300; ++trial) {
        Shares shares(1 + random() % 4);
        for (std::int64_t& share : shares)
            share = random() % 4 == 0 ? 0 : random() % 50;
        shares.front() += 1;
        const std::int64_t items = random() % 9;
        const std::vector<std::int64_t> counts = divide_items(shares, items);
        EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), items);
        std::vector<std::int64_t> others(shares.size());
        EXPECT_DOUBLE_EQ(worst(shares, counts), least_worst(shares, items, 0, others));
        for (std::size_t r = 0; r < shares.size(); ++r)
            EXPECT_TRUE(shares[r] > 0 || counts[r] == 0);
    }
}

}  // namespace
}  // namespace hetseq
