#include "hetseq/balance/cut_items.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using Items = std::vector<std::int64_t>;
using Units = std::vector<std::int64_t>;

TEST(CutItemsTest, EqualItemsFollowTheAllocation) {
    EXPECT_THAT(cut_items(Items(9, 3), Units{4, 0, 2, 3}), testing::ElementsAre(4, 0, 2, 3));
}

TEST(CutItemsTest, LongItemsCountMore) {
    EXPECT_THAT(cut_items(Items{8, 1, 1, 2, 4}, Units{1, 1}), testing::ElementsAre(1, 4));
}

TEST(CutItemsTest, RanksWithoutUnitsGetNothing) {
    EXPECT_THAT(cut_items(Items{0, 1, 1, 0}, Units{0, 5, 0}), testing::ElementsAre(0, 4, 0));
}

TEST(CutItemsTest, FewItemsLeaveRanksEmpty) {
    EXPECT_THAT(cut_items(Items{5}, Units{1, 2, 1}), testing::ElementsAre(0, 1, 0));
    EXPECT_THAT(cut_items(Items{}, Units{1, 2}), testing::ElementsAre(0, 0));
    EXPECT_THAT(cut_items(Items{}, Units{0, 0}), testing::ElementsAre(0, 0));
}

TEST(CutItemsTest, ItemsWithoutCostAreNotLost) {
    EXPECT_THAT(cut_items(Items{0, 0, 0}, Units{1, 1}), testing::ElementsAre(0, 3));
}

TEST(CutItemsTest, RefusesWhatCannotBeCut) {
    EXPECT_THROW(cut_items(Items{1}, Units{0}), InternalError);
    EXPECT_THROW(cut_items(Items{1}, Units{2, -1}), InternalError);
    EXPECT_THROW(cut_items(Items{-1}, Units{1}), InternalError);
    EXPECT_THROW(cut_items(Items(3, std::int64_t{1} << 62), Units{1}), InternalError);
}

// A third of 3 * 2^52 + 1 lies a third of a unit above 2^52: a double cannot tell that from 2^52,
// and rounds to one side or the other as the processor likes.
TEST(CutItemsTest, BordersAreExactWhereFloatingPointRounds) {
    constexpr std::int64_t third = std::int64_t{1} << 52;
    const Items below{third - 1, 2, 2 * third};  // the second item's middle is `third`
    const Items above{third, 2, 2 * third - 1};  // and `third` + 1

    EXPECT_THAT(cut_items(below, Units{1, 2}), testing::ElementsAre(2, 1));
    EXPECT_THAT(cut_items(above, Units{1, 2}), testing::ElementsAre(1, 2));
}

double time_ms(const StepCost& cost, double units) {
    return units == 0 ? 0 : cost.start_ms + units * cost.unit_ms;
}

// The least makespan over all contiguous cuts, tried one by one.
double brute_force(std::span<const std::int64_t> items, std::span<const StepCost> costs) {
    if (costs.empty())
        return items.empty() ? 0 : std::numeric_limits<double>::infinity();
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t taken = 0; taken <= items.size(); ++taken) {
        const auto cost = static_cast<double>(
            std::accumulate(items.begin(), items.begin() + std::ptrdiff_t(taken), std::int64_t{0}));
        best = std::min(best,
                        std::max(time_ms(costs.front(), cost),
                                 brute_force(items.subspan(taken), costs.subspan(1))));
    }
    return best;
}

TEST(CutItemsTest, IsWithinOneItemOfTheBestContiguousCut) {
    std::mt19937 random(4);
    const auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };

    for (int instance = 0; instance < 3000; ++instance) {
        Items items(static_cast<std::size_t>(draw(1, 9)));
        for (std::int64_t& item : items)
            item = 100 * draw(1, 40);
        const auto largest = static_cast<double>(*std::max_element(items.begin(), items.end()));
        const std::int64_t total = std::accumulate(items.begin(), items.end(), std::int64_t{0});
        std::vector<StepCost> costs(static_cast<std::size_t>(draw(1, 4)));
        for (StepCost& cost : costs)
            cost = {.start_ms = 50.0 * draw(0, 3), .unit_ms = 0.1 * draw(1, 10)};
        const Units units = allocate(costs, total);

        const Units pieces = cut_items(items, units);

        ASSERT_EQ(std::accumulate(pieces.begin(), pieces.end(), std::int64_t{0}),
                  std::ssize(items));
        const double best = brute_force(items, costs);
        auto item = items.begin();
        for (std::size_t r = 0; r < costs.size(); ++r) {
            const auto cost =
                static_cast<double>(std::accumulate(item, item + pieces[r], std::int64_t{0}));
            item += pieces[r];
            EXPECT_LE(std::abs(cost - static_cast<double>(units[r])), largest + 1e-9);
            // Allocated units are whole: one more of them may be the slowest rank's.
            EXPECT_LE(time_ms(costs[r], cost), best + (largest + 1) * costs[r].unit_ms + 1e-9);
        }
    }
}

}  // namespace
}  // namespace hetseq
