#include "hetseq/balance/step_table.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

std::vector<double> times(const StepTable& table) {
    std::vector<double> ms;
    for (const CostPoint& point : table.points())
        ms.push_back(point.ms);
    return ms;
}

TEST(StepTableTest, IsLinearBetweenItsPoints) {
    const StepTable table({{8, 12}, {0, 4}, {4, 6}});

    EXPECT_DOUBLE_EQ(table.time_ms(2), 5);
    EXPECT_DOUBLE_EQ(table.time_ms(4), 6);
    EXPECT_DOUBLE_EQ(table.time_ms(6), 9);
    EXPECT_DOUBLE_EQ(table.time_ms(8), 12);
}

TEST(StepTableTest, StartsAtZeroWithoutAPointThere) {
    EXPECT_DOUBLE_EQ(StepTable({{4, 6}}).time_ms(1), 1.5);
}

TEST(StepTableTest, RepeatsBeyondItsLastPoint) {
    const StepTable table({{0, 3}, {4, 4}, {8, 12}});

    EXPECT_DOUBLE_EQ(table.time_ms(12), 12 + 4);
    EXPECT_DOUBLE_EQ(table.time_ms(14), 12 + 8);
    EXPECT_DOUBLE_EQ(table.time_ms(16), 24);
    EXPECT_DOUBLE_EQ(table.time_ms(20), 24 + 4);
    EXPECT_DOUBLE_EQ(table.unit_ms(), 12.0 / 8);
    EXPECT_DOUBLE_EQ(table.units_within(24 + 2), 16);
    EXPECT_DOUBLE_EQ(table.units_within(24 + 8), 22);
}

TEST(StepTableTest, APlateauAtItsStartIsInvertedToo) {
    const StepTable table({{0, 0.01}, {8, 0.01}, {16, 0.02}});

    for (const double ms : {0.5, 4.0, 1024.0})
        EXPECT_NEAR(table.units_within(ms), ms / 0.02 * 16, 16);
    const std::vector<StepCost> costs{{.micro_batch = 16, .table = table}};
    EXPECT_NEAR(bound_ms(costs, 4000), 5, 0.02);
}

TEST(StepTableTest, NeverFallsAndIsInvertedFarBeyondItsLastPoint) {
    const StepTable table({{0, 0.1}, {1, 0.2}, {3, 0.3}, {7, 1.3}});

    for (std::int64_t units = 1; units < 10'000; ++units) {
        EXPECT_LE(table.time_ms(units), table.time_ms(units + 1));
        EXPECT_GE(table.units_within(table.time_ms(units)), static_cast<double>(units) - 1e-6);
    }
}

TEST(StepTableTest, FallingTimesBecomeTheirMean) {
    EXPECT_THAT(times(StepTable({{1, 3}, {2, 5}, {3, 4}, {4, 3}, {5, 9}})),
                testing::ElementsAre(0, 3, 4, 4, 4, 9));
}

TEST(StepTableTest, UnitsWithinInvertsTime) {
    const StepTable table({{0, 1}, {4, 5}, {8, 5}, {16, 13}});

    EXPECT_DOUBLE_EQ(table.units_within(0.5), 0);
    EXPECT_DOUBLE_EQ(table.units_within(3), 2);
    EXPECT_DOUBLE_EQ(table.units_within(5), 8);
    EXPECT_DOUBLE_EQ(table.units_within(9), 12);
    EXPECT_DOUBLE_EQ(table.units_within(13), 16);
    EXPECT_DOUBLE_EQ(table.units_within(15), 17);
}

TEST(StepTableTest, RefusesWhatIsNoTable) {
    EXPECT_THROW(StepTable(std::vector<CostPoint>{}), InternalError);
    EXPECT_THROW(StepTable({{0, 1}}), InternalError);
    EXPECT_THROW(StepTable({{2, 1}, {2, 2}}), InternalError);
    EXPECT_THROW(StepTable({{-1, 1}, {2, 2}}), InternalError);
    EXPECT_THROW(StepTable({{2, -1}}), InternalError);
    EXPECT_THROW(StepTable({{2, std::numeric_limits<double>::infinity()}}), InternalError);
}

}  // namespace
}  // namespace hetseq
