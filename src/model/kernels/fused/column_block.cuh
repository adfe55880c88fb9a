// What the threads that add up a column of rows share, without LibTorch's headers: nvcc compiles it
// for many architectures, and the tests compile it for the CPU.
#pragma once

#include <cstdint>

#include "fused_arrays.hpp"

namespace hetseq::detail {

/// A block with `width` columns side by side; the threads of a column share its rows. All threads
/// make every call. A block sees all rows, so that sums need no second kernel and no atomics. The
/// columns are few, so that even narrow rows give a GPU many blocks.
template <unsigned width>
struct ColumnBlock {
    static constexpr unsigned threads = 1024, columns = width, lanes = threads / width;

    __device__ static unsigned lane() { return threadIdx.x / columns; }
    __device__ static std::uint32_t column() {
        return blockIdx.x * columns + threadIdx.x % columns;
    }
    /// The sum over the lanes of the column, in a fixed order. Lane 0 gets it.
    template <class T>
    __device__ static T sum(T value) {
        __shared__ T sums[threads];
        sums[threadIdx.x] = value;
        for (unsigned other = lanes / 2; other > 0; other /= 2) {
            __syncthreads();
            if (lane() < other)
                sums[threadIdx.x] += sums[threadIdx.x + other * columns];
        }
        value = sums[threadIdx.x];
        __syncthreads();  // before the next sum
        return value;
    }
};

/// One thread with the work of a column.
struct SingleColumn {
    static constexpr unsigned threads = 256, columns = threads, lanes = 1;

    __device__ static unsigned lane() { return 0; }
    __device__ static std::uint32_t column() { return blockIdx.x * columns + threadIdx.x; }
    template <class T>
    __device__ static T sum(T value) {
        return value;
    }
};

/// Columns of elements of type T that fill what a GPU reads at once, 32 bytes.
template <class T>
using ColumnsOf = ColumnBlock<32 / sizeof(T)>;

template <class Team>
unsigned column_blocks(std::uint32_t columns) {
    return (columns + Team::columns - 1) / Team::columns;
}

}  // namespace hetseq::detail
