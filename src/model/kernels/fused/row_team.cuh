// What the threads that work on a row share, without LibTorch's headers: nvcc compiles it for many
// architectures, and the tests compile it for the CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "fused_arrays.hpp"

namespace hetseq::detail {

/// The 32 threads of a warp, each with a lane. All of them make every call.
struct Warp {
    static constexpr unsigned lanes = 32;

    __device__ static unsigned lane() { return threadIdx.x % lanes; }
    template <class T>
    __device__ static T sum(T value) {
        for (int other = lanes / 2; other > 0; other /= 2)
            value += __shfl_xor_sync(0xffffffffu, value, other);
        return value;
    }
    template <class T>
    __device__ static T max(T value) {
        for (int other = lanes / 2; other > 0; other /= 2) {
            const T theirs = __shfl_xor_sync(0xffffffffu, value, other);
            value = theirs > value ? theirs : value;
        }
        return value;
    }
};

/// One thread with the work of a warp.
struct Single {
    static constexpr unsigned lanes = 1;

    __device__ static unsigned lane() { return 0; }
    template <class T>
    __device__ static T sum(T value) {
        return value;
    }
    template <class T>
    __device__ static T max(T value) {
        return value;
    }
};

/// The row of this thread's team, and the blocks for so many rows.
template <class Team>
__device__ __forceinline__ std::uint32_t row_of_team() {
    constexpr unsigned rows = row_block_threads / Team::lanes;
    return blockIdx.x * rows + threadIdx.x / Team::lanes;
}
template <class Team>
unsigned row_blocks(std::int64_t rows) {
    constexpr std::int64_t of_a_block = row_block_threads / Team::lanes;
    return static_cast<unsigned>((rows + of_a_block - 1) / of_a_block);
}

/// visit(columns, kept) for each Philox call of this lane: `kept` bit i says of column
/// `first + 16 i`, which may lie outside of the row. Without dropout all are kept.
template <class Team, class Visit>
__device__ __forceinline__ void for_each_call(const DropoutMask& mask,
                                              const DropoutRow& row,
                                              std::uint32_t columns,
                                              Visit&& visit) {
    const std::uint32_t chunks =
        (columns + row.skipped + DropoutMask::chunk - 1) / DropoutMask::chunk;
    const bool drops = mask.threshold < (1u << 16);
    for (std::uint32_t call = Team::lane(); call < chunks * DropoutMask::lanes;
         call += Team::lanes) {
        std::uint32_t kept = (1u << DropoutMask::slots) - 1;
        if (drops) {
            const PhiloxCounter bits =
                philox4x32(mask.counter(row.sample, row.first_call + call), mask.key);
            kept = 0;
#pragma unroll
            for (int slot = 0; slot < DropoutMask::slots; ++slot)
                kept |=
                    static_cast<std::uint32_t>(DropoutMask::slot_of(bits, slot) < mask.threshold)
                    << slot;
        }
        // Columns before the row wrap around to numbers above `columns`.
        visit(call / DropoutMask::lanes * DropoutMask::chunk + call % DropoutMask::lanes -
                  row.skipped,
              kept);
    }
}

/// element(column, is_kept) for each element of the row that is this lane's.
template <class Team, class Element>
__device__ __forceinline__ void for_each_element(const DropoutMask& mask,
                                                 const DropoutRow& row,
                                                 std::uint32_t columns,
                                                 Element&& element) {
    for_each_call<Team>(mask, row, columns, [&](std::uint32_t first, std::uint32_t kept) {
#pragma unroll
        for (std::uint32_t slot = 0; slot < DropoutMask::slots; ++slot) {
            const std::uint32_t column = first + slot * DropoutMask::lanes;
            if (column < columns)
                element(column, (kept >> slot & 1) != 0);
        }
    });
}

}  // namespace hetseq::detail
