#include "hetseq/balance/paired_gain.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Units = std::vector<std::int64_t>;

TEST(PairedGainTest, ComparesTheSameUpdates) {
    const std::vector<StepCost> costs(2, {.unit_ms = 1, .micro_batch = 8});
    // The first rank takes twice as long in one of two updates, both do in the second batch.
    const std::vector<std::vector<RatioBlock>> batches{{{{2, 1}, 1}, {{1, 1}, 1}}, {{{2, 2}, 5}}};

    const std::vector<double> gains = paired_gains(batches, costs, Units{6, 6}, Units{4, 8});

    // 12 + 6 against 8 + 8; 12 against 16.
    ASSERT_EQ(gains.size(), 2U);
    EXPECT_DOUBLE_EQ(gains[0], 2.0 / 18);
    EXPECT_DOUBLE_EQ(gains[1], -4.0 / 12);
}

TEST(PairedGainTest, BlocksCountByTheirUpdates) {
    const std::vector<StepCost> costs(2, {.unit_ms = 1, .micro_batch = 8});
    const std::vector<std::vector<RatioBlock>> batches{{{{2, 1}, 3}, {{1, 1}, 1}}};

    // 3 x 12 + 6 against 3 x 8 + 8.
    EXPECT_DOUBLE_EQ(paired_gains(batches, costs, Units{6, 6}, Units{4, 8})[0], 10.0 / 42);
}

TEST(PairedGainTest, WhatComesOnceAnUpdateIsNotScaled) {
    const std::vector<StepCost> costs(
        2, {.unit_ms = 1, .micro_batch = 8, .scale = 7, .update_ms = 10});
    const std::vector<std::vector<RatioBlock>> batches{{{{2, 1}, 1}}};

    // 10 + 12 against 10 + 8, and against 24 without the first rank.
    EXPECT_DOUBLE_EQ(paired_gains(batches, costs, Units{6, 6}, Units{4, 8})[0], 4.0 / 22);
    EXPECT_DOUBLE_EQ(paired_gains(batches, costs, Units{6, 6}, Units{0, 12})[0], 0);
}

TEST(EstimateTest, HasThePriorsErrorWhereValuesAgree) {
    const Estimate estimate_of_3 = estimate(std::vector{0.2, 0.2, 0.2}, 0.1);

    // 3 squares of 0.1 over 3 + 3 - 1 degrees of freedom, over 3 values.
    EXPECT_DOUBLE_EQ(estimate_of_3.mean, 0.2);
    EXPECT_NEAR(estimate_of_3.error, std::sqrt(0.03 / 5 / 3), 1e-15);
    EXPECT_TRUE(estimate_of_3.exceeds(0.2, 4));
    EXPECT_FALSE(estimate_of_3.exceeds(0.21, 4));
    EXPECT_FALSE(estimate_of_3.exceeds(0.1, 5));
}

TEST(EstimateTest, ApproachesTheStandardErrorOfTheMean) {
    std::vector<double> values;
    for (int i = 0; i < 1000; ++i)
        values.push_back(i % 2);

    EXPECT_NEAR(estimate(values, 0.1).error, 0.5 / std::sqrt(1000), 1e-4);
}

}  // namespace
}  // namespace hetseq
