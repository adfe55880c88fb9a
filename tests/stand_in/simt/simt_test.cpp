// Of the emulator itself, with kernels whose results are known.
#include "stand_in/simt/simt.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq::simt {
namespace {

using testing::Each;
using testing::ElementsAre;

template <class Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const KernelError& error) {
        return error.what();
    }
    return "no error";
}

__global__ void write_indices(int* out) {
    const unsigned thread = threadIdx.x + threadIdx.y * blockDim.x;
    const unsigned block = blockIdx.x + blockIdx.y * gridDim.x;
    out[block * blockDim.count() + thread] = static_cast<int>(10 * block + thread);
}

TEST(SimtTest, EveryThreadOfEveryBlockRunsOnce) {
    std::vector<int> out(12, -1);

    launch({2, 1}, {3, 2}, [&] { write_indices(out.data()); });

    EXPECT_THAT(out, ElementsAre(0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15));
    std::vector<int> independent(12, -1);
    launch_independent({2, 1}, {3, 2}, [&] { write_indices(independent.data()); });
    EXPECT_EQ(independent, out);
}

__global__ void reverse(int* values) {
    __shared__ int copy[64];
    copy[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}

TEST(SimtTest, ABarrierComesBetweenWritesAndReads) {
    std::vector<int> values(64), reversed(64);
    std::iota(values.begin(), values.end(), 0);
    std::reverse_copy(values.begin(), values.end(), reversed.begin());

    launch({1}, {64}, [&] { reverse(values.data()); });

    EXPECT_EQ(values, reversed);
}

__global__ void sum_warp(float* values) {
    float sum = values[threadIdx.x];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
    values[threadIdx.x] = sum;
}

TEST(SimtTest, ShufflesExchangeInsideAWarp) {
    std::vector<float> values(64, 1);
    std::fill(values.begin() + 32, values.end(), 2.0F);

    launch({1}, {64}, [&] { sum_warp(values.data()); });

    EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 32), Each(32));
    EXPECT_THAT(std::vector<float>(values.begin() + 32, values.end()), Each(64));
}

TEST(SimtTest, MisuseIsReported) {
    const auto partial = [] {
        if (threadIdx.x < 16)
            __shfl_sync(0xFFFFFFFFu, 1.0F, 0);
    };
    const auto apart = [] {
        if (threadIdx.x < 16)
            __shfl_sync(0x0000FFFFu, 1.0F, 20);
    };
    const auto in_a_branch = [] {
        if (threadIdx.x < 16)
            __syncthreads();
        else
            __shfl_sync(0xFFFFFFFFu, 1.0F, 0);
    };

    EXPECT_THAT(error_of([&] { launch({1}, {32}, partial); }), testing::HasSubstr("not there"));
    EXPECT_THAT(error_of([&] { launch({1}, {32}, apart); }), testing::HasSubstr("outside"));
    EXPECT_THAT(error_of([&] { launch({1}, {32}, in_a_branch); }), testing::HasSubstr("branch"));
    EXPECT_THAT(error_of([] { launch_independent({1}, {1}, [] { __syncthreads(); }); }),
                testing::HasSubstr("without them"));
}

}  // namespace
}  // namespace hetseq::simt
