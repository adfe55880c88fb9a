#include "hetseq/balance/slow_ranks.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using Units = std::vector<std::int64_t>;

constexpr int updates_of_period = 10;

// Each unit takes 1 ms where nothing is wrong.
std::vector<StepCost> like_costs(std::size_t ranks) {
    return std::vector<StepCost>(ranks, StepCost{.unit_ms = 1, .micro_batch = 8});
}

// Periods of 10 updates of about 100 ms.
SlowRanksOptions options(std::vector<int> kinds, bool follows = false) {
    return {.kinds = std::move(kinds),
            .follows = follows,
            .period_ms = 10,
            .least_updates = updates_of_period};
}

// `slowness`: by rank, how many times as long as it should a rank takes.
SlowRanks::Change observe_period(SlowRanks& ranks,
                                 const std::vector<double>& slowness,
                                 const Units& allocation) {
    std::vector<double> ms;
    for (std::size_t r = 0; r < slowness.size(); ++r)
        ms.push_back(slowness[r] * static_cast<double>(allocation[r]));
    SlowRanks::Change last;
    for (int update = 0; update < updates_of_period; ++update)
        last = ranks.observe(ms, allocation);
    return last;
}

TEST(SlowRanksTest, ARankThatStaysBelowItsKindIsNamedWithWhatItCosts) {
    SlowRanks ranks(like_costs(4), options({0, 0, 0, 0}));
    const std::vector<double> slowness{1, 1, 2.5, 1.1};
    const Units allocation{30, 30, 30, 30};

    EXPECT_THAT(observe_period(ranks, slowness, allocation).slow, IsEmpty());
    EXPECT_THAT(observe_period(ranks, slowness, allocation).slow, IsEmpty());
    const SlowRanks::Change change = observe_period(ranks, slowness, allocation);

    ASSERT_EQ(change.slow.size(), 1U);
    EXPECT_EQ(change.slow[0].rank, 2U);
    EXPECT_DOUBLE_EQ(change.slow[0].speed, 0.4);
    EXPECT_DOUBLE_EQ(change.slow[0].update_ms, 75);
    EXPECT_DOUBLE_EQ(change.slow[0].well_ms, 33);     // of the last rank
    EXPECT_DOUBLE_EQ(change.slow[0].without_ms, 44);  // 40 units each
    const SlowRanks::Change after = observe_period(ranks, {1, 1, 5, 1.1}, allocation);
    EXPECT_THAT(after.slow, IsEmpty());  // once
    ASSERT_EQ(after.still_slow.size(), 1U);
    EXPECT_EQ(after.still_slow[0].rank, 2U);
    EXPECT_DOUBLE_EQ(after.still_slow[0].speed, 0.2);
    EXPECT_EQ(ranks.slow().size(), 1U);
}

TEST(SlowRanksTest, RanksThatStayWellAreToldOnce) {
    SlowRanks ranks(like_costs(3), options({0, 0, 0}));
    for (int period = 0; period < 2; ++period)
        EXPECT_THAT(observe_period(ranks, {1, 1, 2}, {10, 10, 10}).well, IsEmpty());
    EXPECT_THAT(observe_period(ranks, {1, 1, 2}, {10, 10, 10}).well, ElementsAre(0U, 1U));
    EXPECT_THAT(observe_period(ranks, {1, 1, 2}, {10, 10, 10}).well, IsEmpty());
}

TEST(SlowRanksTest, SharesThatFollowSpeedsLoseLess) {
    SlowRanks ranks(like_costs(2), options({0, 0}, true));
    for (int period = 0; period < 3; ++period)
        observe_period(ranks, {1, 3}, {90, 30});

    ASSERT_EQ(ranks.slow().size(), 1U);
    EXPECT_DOUBLE_EQ(ranks.slow()[0].update_ms, 90);
    EXPECT_DOUBLE_EQ(ranks.slow()[0].well_ms, 60);
    EXPECT_DOUBLE_EQ(ranks.slow()[0].without_ms, 120);
}

TEST(SlowRanksTest, OthersThatCannotHoldTheBatchCannotDoWithoutIt) {
    std::vector<StepCost> costs = like_costs(2);
    costs[0].max_units = 100;
    SlowRanks ranks(costs, options({0, 0}, true));
    for (int period = 0; period < 3; ++period)
        observe_period(ranks, {1, 3}, {90, 30});

    ASSERT_EQ(ranks.slow().size(), 1U);
    EXPECT_TRUE(std::isinf(ranks.slow()[0].without_ms));
}

TEST(SlowRanksTest, OfTwoRanksTheFasterIsTheNorm) {
    SlowRanks ranks(like_costs(2), options({0, 0}));
    for (int period = 0; period < 3; ++period)
        observe_period(ranks, {2, 1}, {10, 10});

    ASSERT_EQ(ranks.slow().size(), 1U);
    EXPECT_EQ(ranks.slow()[0].rank, 0U);
}

// The unlike ranks have no others to be compared with.
TEST(SlowRanksTest, OnlyLikeDevicesAreCompared) {
    std::vector<StepCost> costs = like_costs(4);
    costs[1].unit_ms = 5;
    SlowRanks ranks(costs, options({0, 1, 2, 2}));
    for (int period = 0; period < 9; ++period)
        observe_period(ranks, {3, 1, 1, 1}, {10, 10, 10, 10});

    EXPECT_THAT(ranks.slow(), IsEmpty());
}

TEST(SlowRanksTest, UnlikeSharesAreNoUnlikeSpeeds) {
    std::vector<StepCost> costs = like_costs(3);
    for (StepCost& cost : costs)
        cost.start_ms = 50;
    SlowRanks ranks(costs, options({0, 0, 0}));
    const Units allocation{4, 40, 400};
    for (int period = 0; period < 5; ++period)
        for (int update = 0; update < updates_of_period; ++update)
            ranks.observe(std::vector<double>{54, 90, 450}, allocation);

    EXPECT_THAT(ranks.slow(), IsEmpty());
}

TEST(SlowRanksTest, ADisturbanceThatPassesIsNotNamed) {
    SlowRanks ranks(like_costs(3), options({0, 0, 0}));
    for (int round = 0; round < 5; ++round) {
        observe_period(ranks, {1, 4, 1}, {10, 10, 10});
        observe_period(ranks, {1, 4, 1}, {10, 10, 10});
        observe_period(ranks, {1, 1.2, 1}, {10, 10, 10});
        EXPECT_THAT(ranks.slow(), IsEmpty());
    }
}

TEST(SlowRanksTest, ARankThatIsAsFastAgainHasRecovered) {
    SlowRanks ranks(like_costs(2), options({0, 0}));
    for (int period = 0; period < 3; ++period)
        observe_period(ranks, {1, 2}, {10, 10});
    for (int period = 0; period < 2; ++period)
        EXPECT_THAT(observe_period(ranks, {1, 1}, {10, 10}).recovered, IsEmpty());

    EXPECT_THAT(observe_period(ranks, {1, 1}, {10, 10}).recovered, ElementsAre(1U));
    EXPECT_THAT(ranks.slow(), IsEmpty());
}

TEST(SlowRanksTest, WithoutWorkARankStaysAsItWasFound) {
    SlowRanks ranks(like_costs(3), options({0, 0, 0}, true));
    for (int period = 0; period < 3; ++period)
        observe_period(ranks, {1, 9, 1}, {10, 10, 10});
    for (int period = 0; period < 5; ++period)
        EXPECT_THAT(observe_period(ranks, {1, 1, 1}, {15, 0, 15}).recovered, IsEmpty());

    ASSERT_EQ(ranks.slow().size(), 1U);
    EXPECT_NEAR(ranks.slow()[0].speed, 1.0 / 9, 1e-12);
}

TEST(SlowRanksTest, TimesThatAreNotKnownDoNotCount) {
    SlowRanks ranks(like_costs(2), options({0, 0}));
    const double never = std::numeric_limits<double>::infinity();
    for (int update = 0; update < 100; ++update) {
        ranks.observe(std::vector<double>{10, 0}, Units{10, 10});
        ranks.observe(std::vector<double>{10, std::nan("")}, Units{10, 10});
        ranks.observe(std::vector<double>{10, never}, Units{10, 10});
        ranks.observe(std::vector<double>{0, 0}, Units{10, 10});
    }
    EXPECT_THAT(ranks.slow(), IsEmpty());
}

// Single updates vary by a factor of up to 3.
TEST(SlowRanksTest, NoiseAloneNamesNobody) {
    std::mt19937 random{7};
    std::exponential_distribution<double> delay{4};
    SlowRanks ranks(like_costs(8), options({0, 0, 0, 0, 1, 1, 1, 1}));
    for (int update = 0; update < 5000; ++update) {
        std::vector<double> ms;
        for (int r = 0; r < 8; ++r)
            ms.push_back(20 * (1 + delay(random)));
        ranks.observe(ms, Units(8, 20));
    }
    EXPECT_THAT(ranks.slow(), IsEmpty());
}

}  // namespace
}  // namespace hetseq
