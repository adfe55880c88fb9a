#include "hetseq/plan/time_points.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Points = std::vector<TimePoint>;

TEST(TimePointsTest, APointGivesAProportion) {
    const LineFit fitted = fit_times(Points{{10, 25}}, 16);

    EXPECT_NEAR(fitted.cost.unit_ms, 2.5, 1e-9);
    EXPECT_DOUBLE_EQ(fitted.cost.micro_batch_ms, 0);
    EXPECT_DOUBLE_EQ(fitted.cost.start_ms, 0);
    EXPECT_EQ(fitted.cost.micro_batch, 16);
}

TEST(TimePointsTest, AStaircaseIsFoundAgain) {
    const StepCost made{.start_ms = 7, .micro_batch_ms = 3, .unit_ms = 0.5, .micro_batch = 8};
    Points points;
    for (std::int64_t units : {1, 4, 8, 12, 30, 64})
        points.push_back({static_cast<double>(units), made.time_ms(units)});

    const LineFit fitted = fit_times(points, 8);

    EXPECT_NEAR(fitted.cost.start_ms, 7, 1e-6);
    EXPECT_NEAR(fitted.cost.micro_batch_ms, 3, 1e-6);
    EXPECT_NEAR(fitted.cost.unit_ms, 0.5, 1e-6);
    EXPECT_NEAR(fitted.worst_error, 0, 1e-9);
}

TEST(TimePointsTest, NothingIsNegative) {
    const LineFit falling = fit_times(Points{{10, 30}, {20, 20}}, 32);
    const LineFit steep = fit_times(Points{{10, 10}, {20, 60}}, 32);

    for (const LineFit& fitted : {falling, steep}) {
        EXPECT_GE(fitted.cost.start_ms, 0);
        EXPECT_GE(fitted.cost.micro_batch_ms, 0);
        EXPECT_GT(fitted.cost.unit_ms, 0);
        EXPECT_GT(fitted.worst_error, 0.05);
    }
}

}  // namespace
}  // namespace hetseq
