#include "hetseq/balance/step_cost.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(StepCostTest, FollowsTheStaircase) {
    const StepCost cost{.start_ms = 5, .micro_batch_ms = 2, .unit_ms = 0.5, .micro_batch = 4};

    EXPECT_DOUBLE_EQ(cost.time_ms(0), 0);
    EXPECT_DOUBLE_EQ(cost.time_ms(4), 5 + 2 + 2);
    EXPECT_DOUBLE_EQ(cost.time_ms(5), 5 + 4 + 2.5);
}

TEST(StepCostTest, UnitsWithinInvertsTime) {
    const StepCost cost{.start_ms = 5, .micro_batch_ms = 2, .unit_ms = 0.5, .micro_batch = 4};

    for (std::int64_t units = 1; units <= 40; ++units) {
        EXPECT_EQ(cost.units_within(cost.time_ms(units), 1000), units);
        EXPECT_EQ(cost.units_within(cost.time_ms(units) - 1e-9, 1000), units - 1);
    }
}

TEST(StepCostTest, ARankWithoutWorkTakesNothing) {
    EXPECT_EQ(declared_costs(std::vector<std::int64_t>{0})[0].units_within(1e9, 100), 0);
}

}  // namespace
}  // namespace hetseq
