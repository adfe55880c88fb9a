// Sums of squares on a GPU, without LibTorch's headers: nvcc compiles it for many architectures,
// and the tests compile it for the CPU.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hetseq::detail {

inline constexpr unsigned square_block_threads = 256;
inline constexpr unsigned square_lanes = 4;  // loads of a thread that are under way at once

/// Depends on `count` alone, and so does the order of the sum.
inline unsigned square_blocks(std::int64_t count) {
    constexpr std::int64_t of_a_block = square_block_threads * square_lanes;
    return static_cast<unsigned>(
        std::clamp<std::int64_t>((count + of_a_block - 1) / of_a_block, 1, 1024));
}

/// Each block writes the sum of its elements' squares, in fp64, to its place in `sums`.
template <class T>
__global__ void sum_of_squares(const T* x, std::int64_t count, double* sums) {
    __shared__ double parts[square_block_threads];
    double sum[square_lanes] = {};
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * square_block_threads;
    std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * square_block_threads + threadIdx.x;
#pragma unroll 1  // the compiler would divide 64-bit numbers for the count of rounds
    for (; i + (square_lanes - 1) * step < count; i += square_lanes * step) {
#pragma unroll
        for (unsigned lane = 0; lane < square_lanes; ++lane) {
            const double value = static_cast<double>(x[i + lane * step]);
            sum[lane] += value * value;
        }
    }
#pragma unroll 1
    for (; i < count; i += step) {
        const double value = static_cast<double>(x[i]);
        sum[0] += value * value;
    }
    parts[threadIdx.x] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    __syncthreads();
    for (unsigned half = square_block_threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = parts[0];
}

}  // namespace hetseq::detail
