#include "hetseq/plan/roofline.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

const GpuPeaks small{.name = "small",
                     .title = "a GPU of round numbers",
                     .fp32_tflops = 1,
                     .fp64_tflops = 0.5,
                     .fp16_tflops = 4,
                     .memory_gb_s = 100,
                     .cache_mb = 1};

TEST(Roofline, AnOperatorTakesTheLongerOfArithmeticAndMemory) {
    const OperatorWork busy{"product", 4e9, Precision::fp32, {10'000'000}};     // 4 ms and 0.1 ms
    const OperatorWork reading{"sum", 1e6, Precision::fp32, {200'000'000, 4}};  // 0.001 ms and 2 ms
    const RooflineBound bound = roofline(std::vector{busy, reading}, small);
    EXPECT_NEAR(bound.compute_ms, 4.001, 1e-12);
    EXPECT_NEAR(bound.memory_ms, 2.1, 1e-12);
    EXPECT_NEAR(bound.device_ms, 6, 1e-12);
    EXPECT_NEAR(bound.ms(), 6, 1e-12);
}

TEST(Roofline, EachPrecisionHasItsOwnPeak) {
    const OperatorWork single{"product", 1e9, Precision::fp32};
    const OperatorWork twice{"product", 1e9, Precision::fp64};
    EXPECT_NEAR(roofline({&single, 1}, small).device_ms, 1, 1e-12);
    EXPECT_NEAR(roofline({&twice, 1}, small).device_ms, 2, 1e-12);
    const OperatorWork quarter{"product", 1e9, Precision::fp16};
    EXPECT_NEAR(roofline({&quarter, 1}, small).device_ms, 0.25, 1e-12);
}

TEST(Roofline, TheKnownGpusComputeInWhatTheyHave) {
    for (const GpuPeaks& gpu : gpu_peaks()) {
        EXPECT_GT(peak_tflops(gpu, Precision::fp32), 0) << gpu.name;
        const bool is_ampere = gpu.name == "h100" || gpu.name == "a100";
        EXPECT_EQ(peak_tflops(gpu, Precision::bf16) > 0, is_ampere) << gpu.name;
        EXPECT_EQ(peak_tflops(gpu, Precision::tf32) > gpu.fp32_tflops, is_ampere) << gpu.name;
        EXPECT_GE(peak_tflops(gpu, Precision::fp16), 2 * gpu.fp32_tflops) << gpu.name;
    }
}

TEST(Roofline, WhatTheCacheHoldsCostsNoMemory) {
    const OperatorWork work{"copy", 0, Precision::fp32, {1'000'000, 1'000'001}};
    EXPECT_NEAR(roofline({&work, 1}, small).memory_ms, 0.01000001, 1e-12);
}

TEST(Roofline, SmallOperatorsAreBoundByTheirLaunches) {
    const std::vector<OperatorWork> many(500, OperatorWork{"add", 0, Precision::fp32, {1000}});
    EXPECT_EQ(roofline(many, small).device_ms, 0);
    EXPECT_NEAR(roofline(many, small).ms(), 500 * launch_us / 1000, 1e-12);
}

TEST(Roofline, KnowsTheDevicesOfUniversities) {
    std::vector<std::string> names;
    for (const GpuPeaks& gpu : gpu_peaks()) {
        names.push_back(gpu.name);
        EXPECT_GE(gpu.fp32_tflops, gpu.fp64_tflops) << gpu.name;
    }
    EXPECT_THAT(names, testing::ElementsAre("h100", "a100", "v100", "p100"));
}

}  // namespace
}  // namespace hetseq
