// Dropout on a GPU, without LibTorch's headers: nvcc compiles it for many architectures, and the
// tests compile it for the CPU.
#pragma once

#include <cstdint>

#include "computed_type.hpp"
#include "dropout_grid.hpp"

namespace hetseq::detail {

/// The eight elements of one Philox call behind `x` and `out`: `first` and every `step`th after it.
/// Those that are not below `end` are left out. `scale` has no less than fp32's bits: rounded to
/// bf16, it would make all that is kept too large or too small.
template <class T>
__device__ __forceinline__ void drop_call(const T* x,
                                          T* out,
                                          std::uint32_t first,
                                          std::uint32_t step,
                                          std::uint32_t end,
                                          const DropoutMask& mask,
                                          std::int64_t sample,
                                          std::uint32_t number,
                                          ComputedType<T> scale) {
    T values[DropoutMask::slots];
#pragma unroll
    for (std::uint32_t slot = 0; slot < DropoutMask::slots; ++slot) {
        const std::uint32_t element = first + slot * step;
        values[slot] = element < end ? x[element] : T(0);
    }
    const PhiloxCounter bits =
        philox4x32(mask.counter(static_cast<std::uint64_t>(sample), number), mask.key);
#pragma unroll
    for (std::uint32_t slot = 0; slot < DropoutMask::slots; ++slot) {
        const std::uint32_t element = first + slot * step;
        const bool kept = DropoutMask::slot_of(bits, static_cast<int>(slot)) < mask.threshold;
        if (element < end)
            out[element] =
                kept ? static_cast<T>(static_cast<ComputedType<T>>(values[slot]) * scale) : T(0);
    }
}

/// One thread per Philox call: lane `call % 16` of chunk `call / 16`, eight elements each. Blocks
/// (x, y): calls of a sample, and samples. `x` and `out` may be the same.
template <class T>
__global__ void drop(const T* x,
                     T* out,
                     const std::int64_t* sample_ids,
                     std::int64_t samples,
                     DropoutMask mask,
                     DropoutGrid grid,
                     ComputedType<T> scale) {
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
        drop_call(x + begin,
                  out + begin,
                  first,
                  DropoutMask::lanes,
                  grid.columns,
                  mask,
                  sample_ids[sample],
                  number,
                  scale);
    }
}

/// One thread per Philox call that a row of tokens can need; the first and the last chunk of a row
/// may reach into its neighbours. `x` and `out` may be the same.
template <class T>
__global__ void drop_tokens(const T* x,
                            T* out,
                            const std::int64_t* sample_ids,
                            const std::int64_t* positions,
                            DropoutMask mask,
                            TokenGrid grid,
                            ComputedType<T> scale) {
    const std::uint32_t call = blockIdx.x * blockDim.x + threadIdx.x;
    if (call >= grid.calls())
        return;
    const std::uint32_t lane = call % DropoutMask::lanes;
    const std::uint32_t row = call / DropoutMask::lanes / grid.row_chunks;
    const std::uint32_t chunk = call / DropoutMask::lanes % grid.row_chunks;
    const std::uint64_t row_first =  // in the sample
        static_cast<std::uint64_t>(positions[row]) * grid.columns;
    const std::uint32_t skipped = static_cast<std::uint32_t>(row_first % DropoutMask::chunk);
    const std::uint32_t number =
        (static_cast<std::uint32_t>(row_first / DropoutMask::chunk) + chunk) * DropoutMask::lanes +
        lane;
    // Elements before the row wrap around to numbers above `columns`.
    const std::uint32_t first = chunk * DropoutMask::chunk + lane - skipped;
    const std::int64_t begin = static_cast<std::int64_t>(row) * grid.columns;
    drop_call(x + begin,
              out + begin,
              first,
              DropoutMask::lanes,
              grid.columns,
              mask,
              sample_ids[row],
              number,
              scale);
}

/// One thread per Philox call: a column of eight rows. Blocks (x, y): calls of a sample, and
/// samples. `x` and `out` may be the same.
template <class T>
__global__ void drop_matrices(const T* x,
                              T* out,
                              const std::int64_t* sample_ids,
                              std::int64_t samples,
                              DropoutMask mask,
                              MatrixGrid grid,
                              ComputedType<T> scale) {
    const std::uint32_t call = blockIdx.x * blockDim.x + threadIdx.x;
    if (call >= grid.calls())
        return;
    const DropoutMatrices& places = grid.matrices;
    const std::uint32_t column = call % places.columns;
    const std::uint32_t block = call / places.columns % places.row_blocks();
    const std::uint32_t matrix = call / places.columns / places.row_blocks();
    mask.key = places.key_of(mask.key, matrix, block);
    const std::uint32_t matrix_size = places.rows * places.columns;
    const std::uint32_t first = block * DropoutMatrices::block_rows * places.columns + column;
    for (std::int64_t sample = blockIdx.y; sample < samples; sample += gridDim.y) {
        const std::int64_t begin = (sample * places.matrices + matrix) * matrix_size;
        drop_call(x + begin,
                  out + begin,
                  first,
                  places.columns,
                  matrix_size,
                  mask,
                  sample_ids[sample],
                  column,
                  scale);
    }
}

}  // namespace hetseq::detail
