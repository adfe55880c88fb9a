// Dropout on a GPU, without LibTorch's headers: nvcc compiles it for many architectures, and the
// tests compile it for the CPU.
#pragma once

#include <cstdint>

#include "dropout_grid.hpp"

namespace hetseq::detail {

/// One thread per Philox call: lane `call % 16` of chunk `call / 16`, eight elements each. Blocks
/// (x, y): calls of a sample, and samples. `x` and `out` may be the same.
template <class T>
__global__ void drop(const T* x,
                     T* out,
                     const std::int64_t* sample_ids,
                     std::int64_t samples,
                     DropoutMask mask,
                     DropoutGrid grid,
                     T scale) {
    const std::uint32_t call = blockIdx.x * blockDim.x + threadIdx.x;
    if (call >= grid.calls())
        return;
    const std::uint32_t lane = call % DropoutMask::lanes;
    const std::uint32_t row = call / DropoutMask::lanes / grid.row_chunks;
    const std::uint32_t chunk = call / DropoutMask::lanes % grid.row_chunks;
    const std::uint32_t number = (grid.first_chunk(row) + chunk) * DropoutMask::lanes + lane;
    const std::uint32_t first = chunk * DropoutMask::chunk + lane;
    const std::int64_t sample_size = static_cast<std::int64_t>(grid.rows) * grid.columns;
    const std::int64_t row_begin = static_cast<std::int64_t>(row) * grid.columns;
    for (std::int64_t sample = blockIdx.y; sample < samples; sample += gridDim.y) {
        const std::int64_t begin = sample * sample_size + row_begin;
        T values[DropoutMask::slots];
#pragma unroll
        for (std::uint32_t slot = 0; slot < DropoutMask::slots; ++slot) {
            const std::uint32_t element = first + slot * DropoutMask::lanes;
            values[slot] = element < grid.columns ? x[begin + element] : T(0);
        }
        const PhiloxCounter bits = philox4x32(
            mask.counter(static_cast<std::uint64_t>(sample_ids[sample]), number), mask.key);
#pragma unroll
        for (std::uint32_t slot = 0; slot < DropoutMask::slots; ++slot) {
            const std::uint32_t element = first + slot * DropoutMask::lanes;
            const bool kept = DropoutMask::slot_of(bits, static_cast<int>(slot)) < mask.threshold;
            if (element < grid.columns)
                out[begin + element] = kept ? static_cast<T>(values[slot] * scale) : T(0);
        }
    }
}

}  // namespace hetseq::detail
