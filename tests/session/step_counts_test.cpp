#include "hetseq/session/step_counts.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

const GpuPeaks small{.name = "small",
                     .title = "a GPU of round numbers",
                     .fp32_tflops = 1,
                     .fp64_tflops = 0.5,
                     .fp16_tflops = 4,
                     .memory_gb_s = 100,
                     .cache_mb = 1};

// 1e9 operations take it a millisecond.
OperatorWork busy(double ms) {
    return {"product", ms * 1e9, Precision::fp32, {}};
}

TEST(RooflineCost, IsTheLineThroughAHalfAndAFullMicroBatch) {
    StepCounts counts;
    counts.passes.push_back({.samples = 8, .units = 8, .micro_batches = 1, .operators = {busy(5)}});
    counts.passes.push_back(
        {.samples = 16, .units = 16, .micro_batches = 1, .operators = {busy(9)}});
    counts.update = {busy(0.25)};
    const StepCost cost = roofline_cost(counts, small);
    EXPECT_NEAR(cost.micro_batch_ms, 1, 1e-12);
    EXPECT_NEAR(cost.unit_ms, 0.5, 1e-12);
    EXPECT_EQ(cost.micro_batch, 16);
    EXPECT_NEAR(cost.update_ms, 0.25, 1e-12);
    EXPECT_NEAR(cost.time_ms(16), 9.25, 1e-12);
}

// Launches alone: a larger micro-batch costs nothing more.
TEST(RooflineCost, OfLaunchesIsTheSameForEverySize) {
    const std::vector<OperatorWork> launches(1000, busy(0));
    StepCounts counts;
    counts.passes.push_back({.samples = 8, .units = 8, .micro_batches = 1, .operators = launches});
    counts.passes.push_back(
        {.samples = 16, .units = 16, .micro_batches = 1, .operators = launches});
    const StepCost cost = roofline_cost(counts, small);
    EXPECT_NEAR(cost.micro_batch_ms, launch_us, 1e-12);
    EXPECT_NEAR(cost.unit_ms, 0, 1e-12);
}

TEST(RooflineCost, OfOneBatchIsItsTimeForAUnit) {
    StepCounts counts;
    counts.passes.push_back(
        {.samples = 30, .units = 400, .micro_batches = 4, .operators = {busy(8)}});
    const StepCost cost = roofline_cost(counts, small);
    EXPECT_NEAR(cost.unit_ms, 0.02, 1e-12);
    EXPECT_EQ(cost.micro_batch, 100);
    EXPECT_EQ(cost.micro_batch_ms, 0);
}

}  // namespace
}  // namespace hetseq
