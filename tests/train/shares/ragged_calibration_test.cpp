#include "hetseq/train/shares/ragged_calibration.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

// Times of a device to which a value costs 0.01 ms and a square `square` times as much, with
// `noise` to and fro.
std::vector<RaggedSample> measured(double square, double noise) {
    std::vector<RaggedSample> samples;
    int turn = 0;
    for (const double length : {8.0, 20.0, 60.0})
        for (const double count : {20.0, 80.0, 160.0})
            for (const std::int64_t micro_batches : {1, 2}) {
                RaggedSample sample{count * length, count * length * length, micro_batches, 0};
                sample.ms = 3 + 0.5 * static_cast<double>(micro_batches) +
                            0.01 * (sample.values + square * sample.squares);
                sample.ms *= 1 + (turn++ % 2 == 0 ? noise : -noise);
                samples.push_back(sample);
            }
    return samples;
}

TEST(FitItemCostTest, FindsWhatTheSquareOfALengthCosts) {
    for (const double square : {0.001, 0.01, 0.1})
        EXPECT_NEAR(fit_item_cost(measured(square, 0)).square / square, 1, 0.06) << square;
}

TEST(FitItemCostTest, IsNothingWhereLengthsCostNothingOfTheirOwn) {
    EXPECT_EQ(fit_item_cost(measured(0, 0)).square, 0);
    EXPECT_EQ(fit_item_cost(measured(0, 0.03)).square, 0);
}

TEST(FitItemCostTest, IsAboutRightWithNoise) {
    EXPECT_NEAR(fit_item_cost(measured(0.02, 0.03)).square, 0.02, 0.008);
}

}  // namespace
}  // namespace hetseq
