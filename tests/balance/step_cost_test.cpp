#include "hetseq/balance/step_cost.hpp"

#include <random>

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

TEST(StepCostTest, ATableReplacesTheLine) {
    const StepCost cost{.start_ms = 100, .micro_batch = 8, .table = StepTable({{0, 2}, {8, 10}})};

    EXPECT_DOUBLE_EQ(cost.time_ms(0), 0);
    EXPECT_DOUBLE_EQ(cost.time_ms(4), 6);
    EXPECT_DOUBLE_EQ(cost.rate(), 0.8);
}

TEST(StepCostTest, ScaleMultipliesAllTimes) {
    StepCost cost{.start_ms = 5, .micro_batch_ms = 2, .unit_ms = 0.5, .micro_batch = 4};
    cost.scale = 3;

    EXPECT_DOUBLE_EQ(cost.time_ms(0), 0);
    EXPECT_DOUBLE_EQ(cost.time_ms(5), 3 * (5 + 4 + 2.5));
    EXPECT_DOUBLE_EQ(cost.rate(), 1.0 / 3);
}

TEST(StepCostTest, WhatComesOnceAnUpdateIsNotScaled) {
    const StepCost line{.start_ms = 5, .unit_ms = 1, .micro_batch = 4, .scale = 2, .update_ms = 3};
    const StepCost table{.scale = 2, .update_ms = 3, .table = StepTable({{0, 2}, {8, 10}})};

    for (const StepCost& cost : {line, table})
        EXPECT_DOUBLE_EQ(cost.time_ms(0), 0);
    EXPECT_DOUBLE_EQ(line.time_ms(6), 3 + 2 * (5 + 6));
    EXPECT_DOUBLE_EQ(line.fixed_ms(), 3 + 2 * 5);
    EXPECT_EQ(line.units_within(25, 100), 6);
    EXPECT_DOUBLE_EQ(table.time_ms(4), 3 + 2 * 6);
    EXPECT_EQ(table.units_within(15, 100), 4);
    EXPECT_EQ(table.units_within(2.9, 100), 0);
}

TEST(StepCostTest, WholeRangeOfLimitsIsSafe) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const StepCost costless{.unit_ms = 0, .micro_batch = 4};

    EXPECT_EQ(costless.units_within(1, most), most);
    EXPECT_EQ(costless.units_within(-1, most), 0);
    EXPECT_EQ(StepCost{}.units_within(1e6, most), 1'000'000);
    EXPECT_EQ(StepCost{}.units_within(0, most), 0);
}

// The last number of units within `ms`, tried one by one.
std::int64_t counted_units(const StepCost& cost, double ms, std::int64_t limit) {
    std::int64_t units = 0;
    while (units < std::min(limit, cost.max_units) && cost.time_ms(units + 1) <= ms)
        ++units;
    return units;
}

TEST(StepCostTest, UnitsWithinEqualsCounting) {
    std::mt19937 random(11);
    const auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };

    for (int instance = 0; instance < 5000; ++instance) {
        StepCost cost{.start_ms = 0.3 * draw(0, 20),
                      .micro_batch_ms = 0.7 * draw(0, 9),
                      .unit_ms = 0.1 * draw(0, 9),
                      .micro_batch = draw(1, 9),
                      .max_units = draw(0, 60),
                      .scale = 0.1 * draw(1, 30)};
        if (instance % 2 == 0)
            cost.table = StepTable({{draw(1, 9), 0.3 * draw(0, 50)},
                                    {draw(10, 19), 0.3 * draw(0, 50)},
                                    {draw(20, 40), 0.3 * draw(0, 50)}});
        // Times of the staircase itself, and between them.
        const double ms = instance % 3 == 0 ? cost.time_ms(draw(0, 70)) : 0.1 * draw(0, 1000);

        EXPECT_EQ(cost.units_within(ms, 50), counted_units(cost, ms, 50)) << instance;
    }
}

TEST(StepCostTest, SmallerMicroBatchesStartMoreOften) {
    const StepCost line{.start_ms = 1, .micro_batch_ms = 2, .unit_ms = 3, .micro_batch = 8};
    EXPECT_EQ(limited_to(line, 4).time_ms(8), 1 + 2 * 2 + 8 * 3);
    EXPECT_EQ(limited_to(line, 16).micro_batch, 8);

    StepCost table{.micro_batch = 8, .table = StepTable({{0, 1}, {2, 3}, {8, 6}})};
    const StepCost limited = limited_to(table, 4);
    EXPECT_EQ(limited.micro_batch, 4);
    EXPECT_DOUBLE_EQ(limited.time_ms(4), table.time_ms(4));
    EXPECT_DOUBLE_EQ(limited.time_ms(8), 2 * table.time_ms(4));
}

// Four micro-batches of 10 ms and 40 units of 1 ms: four more cost 40 ms, forward once more its
// part of 80 ms.
TEST(StepCostTest, RecomputingIsComparedByForwardsPartOfTheTime) {
    StepCost cost{.micro_batch_ms = 10, .unit_ms = 1, .micro_batch = 10};

    EXPECT_TRUE(recomputing_costs_less(cost, 40, 4));  // a third, where it was not measured
    cost.forward_part = 0.49;
    EXPECT_TRUE(recomputing_costs_less(cost, 40, 4));
    cost.forward_part = 0.51;
    EXPECT_FALSE(recomputing_costs_less(cost, 40, 4));
    EXPECT_FALSE(recomputing_costs_less({.unit_ms = 1}, 40, 4));  // micro-batches cost nothing
}

}  // namespace
}  // namespace hetseq
