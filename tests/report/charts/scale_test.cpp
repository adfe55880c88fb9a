#include "hetseq/report/charts/scale.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

TEST(ScaleTest, StepsAreRound) {
    EXPECT_DOUBLE_EQ(round_step(1), 1);
    EXPECT_DOUBLE_EQ(round_step(1.1), 2);
    EXPECT_DOUBLE_EQ(round_step(0.03), 0.05);
    EXPECT_DOUBLE_EQ(round_step(70), 100);
    EXPECT_DOUBLE_EQ(round_step(2e-7), 2e-7);
}

TEST(ScaleTest, ALinearAxisGoesFromAndToRoundNumbers) {
    const Scale scale = Scale::around({0.13, 0.87}, Spacing::linear);

    EXPECT_THAT(scale.ticks(), Pointwise(DoubleNear(1e-12), {0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
    EXPECT_DOUBLE_EQ(scale.position(0.5), 0.5);
}

TEST(ScaleTest, ALogarithmicAxisHasRoundTicksAroundItsRange) {
    const Scale scale = Scale::around({0.03, 2.3}, Spacing::logarithmic);

    EXPECT_THAT(scale.ticks(),
                Pointwise(DoubleNear(1e-12), {0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0}));
    EXPECT_NEAR(scale.position(0.02), 0, 1e-12);
    EXPECT_NEAR(scale.position(5), 1, 1e-12);
    EXPECT_NEAR(scale.position(std::sqrt(0.02 * 5)), 0.5, 1e-12);
}

TEST(ScaleTest, OverManyDecadesALogarithmicAxisHasFewTicks) {
    const Scale scale = Scale::around({1e-30, 1e10}, Spacing::logarithmic);

    EXPECT_LE(scale.ticks().size(), 12U);
    EXPECT_GE(scale.ticks().size(), 4U);
    EXPECT_LE(scale.range().low, 1e-30);
    EXPECT_GE(scale.range().high, 1e10);
}

// Every value lies on the axis, whatever the range.
TEST(ScaleTest, RangesOfAnySizeFit) {
    for (const Spacing spacing : {Spacing::linear, Spacing::logarithmic})
        for (const double low : {1e-300, 3e-9, 0.7, 99.0, 1e12})
            for (const double factor :
                 {1.0, 1 + 2.3e-16, 1 + 1e-14, 1 + 2e-12, 1 + 2e-6, 1.0001, 3.3, 1e3, 1e8}) {
                const Scale scale = Scale::around({low, low * factor}, spacing);
                EXPECT_GE(scale.position(low), -1e-9) << low << " " << factor;
                EXPECT_LE(scale.position(low * factor), 1 + 1e-9) << low << " " << factor;
                EXPECT_GE(scale.ticks().size(), 2U) << low << " " << factor;
                EXPECT_LE(scale.ticks().size(), 16U) << low << " " << factor;
            }
}

TEST(ScaleTest, ASingleValueLiesInTheMiddle) {
    EXPECT_NEAR(Scale::around({0, 0}, Spacing::linear).position(0), 0.5, 1e-12);
    EXPECT_NEAR(Scale::of_counts({7, 7}).position(7), 0.5, 1e-12);
}

TEST(ScaleTest, CountsHaveWholeTicksWithinTheirRange) {
    EXPECT_THAT(Scale::of_counts({1, 4}).ticks(), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(Scale::of_counts({5, 282}).ticks(), ElementsAre(50, 100, 150, 200, 250));
    EXPECT_DOUBLE_EQ(Scale::of_counts({5, 282}).position(5), 0);
}

TEST(ScaleTest, ALengthBeginsAtZero) {
    const Scale scale = Scale::of_length(35);

    EXPECT_THAT(scale.ticks(), ElementsAre(0, 10, 20, 30));
    EXPECT_FALSE(std::signbit(scale.ticks().front()));
    EXPECT_DOUBLE_EQ(scale.position(35), 1);
}

TEST(ScaleTest, LabelsAreShort) {
    EXPECT_EQ(tick_label(0), "0");
    EXPECT_EQ(tick_label(0.25), "0.25");
    EXPECT_EQ(tick_label(-1500), "-1500");
    EXPECT_EQ(tick_label(20000), "20k");
    EXPECT_EQ(tick_label(1500000), "1.5M");
    EXPECT_EQ(tick_label(3e9), "3G");
    EXPECT_EQ(tick_label(-0.00015), "-1.5e-4");
    EXPECT_EQ(tick_label(1e-4), "1e-4");
    EXPECT_EQ(tick_label(2e-5), "2e-5");
}

}  // namespace
}  // namespace hetseq
