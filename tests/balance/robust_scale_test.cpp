#include "hetseq/balance/robust_scale.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

void observe(RobustScale& scale, int times, double ratio) {
    for (int i = 0; i < times; ++i)
        scale.observe(ratio);
}

TEST(RobustScaleTest, KeepsItsPriorUntilFiveRatios) {
    RobustScale scale(2);

    observe(scale, 4, 3);
    EXPECT_DOUBLE_EQ(scale.value(), 2);
    observe(scale, 1, 3);
    EXPECT_DOUBLE_EQ(scale.value(), 3);
}

TEST(RobustScaleTest, IsTheMedianOfTheLast31) {
    RobustScale scale;

    for (int i = 1; i <= 40; ++i)
        scale.observe(1 + 0.001 * i);

    EXPECT_DOUBLE_EQ(scale.value(), 1 + 0.001 * 25);
}

TEST(RobustScaleTest, SpikesDoNotCount) {
    RobustScale scale;

    for (int i = 0; i < 60; ++i)
        scale.observe(i % 5 == 0 ? 30 : 1);

    EXPECT_DOUBLE_EQ(scale.value(), 1);
}

TEST(RobustScaleTest, AChangeForgetsWhatWasBefore) {
    RobustScale scale;
    observe(scale, 15, 1);

    // Seven of eight show it; the plain median would still be 1.
    observe(scale, 6, 4);
    EXPECT_DOUBLE_EQ(scale.value(), 1);
    observe(scale, 1, 4);
    EXPECT_DOUBLE_EQ(scale.value(), 4);
    observe(scale, 7, 0.5);
    EXPECT_DOUBLE_EQ(scale.value(), 0.5);
}

TEST(RobustScaleTest, ASpikeDoesNotHideAChange) {
    RobustScale scale;
    observe(scale, 15, 3);

    observe(scale, 4, 1);
    observe(scale, 1, 20);
    observe(scale, 3, 1);

    EXPECT_DOUBLE_EQ(scale.value(), 1);
}

TEST(RobustScaleTest, StandardErrorIsTheMedians) {
    std::mt19937 random(2);
    std::normal_distribution<double> noise(1, 0.05);
    double squares = 0;
    double errors = 0;
    constexpr int runs = 4000;

    for (int run = 0; run < runs; ++run) {
        RobustScale scale;
        for (int i = 0; i < 15; ++i)
            scale.observe(noise(random));
        squares += std::pow(scale.value() - 1, 2);
        errors += scale.standard_error();
    }

    // The asymptotic formula, and the deviation's own bias, are within a fifth at 15 values.
    EXPECT_NEAR(errors / runs / std::sqrt(squares / runs), 1, 0.2);
}

}  // namespace
}  // namespace hetseq
