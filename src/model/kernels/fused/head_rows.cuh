// Between rows of tokens and the heads of attention, on a GPU.
#pragma once

#include "column_block.cuh"
#include "fused_arrays.hpp"

namespace hetseq::detail {

/// Neighbours that a thread moves at once.
template <class T, int count>
struct alignas(sizeof(T) * count) Pack {
    T values[count];
};

/// Where column `column` (in packs) of place `place` is in a part.
__device__ __forceinline__ std::int64_t head_place(const HeadPlaces& at,
                                                   std::uint32_t place,
                                                   std::uint32_t column,
                                                   std::uint32_t width) {
    const std::uint32_t sample = place / at.length, t = place % at.length;
    const std::uint32_t head = column / width;
    return ((static_cast<std::int64_t>(sample) * at.heads + head) * at.length + t) * width +
           column % width;
}

template <class T, int pack>
__device__ __forceinline__ Pack<T, pack> added(const Pack<T, pack>& a, const ComputedType<T>* b) {
    Pack<T, pack> sum;
#pragma unroll
    for (int i = 0; i < pack; ++i)
        sum.values[i] = static_cast<T>(static_cast<ComputedType<T>>(a.values[i]) + b[i]);
    return sum;
}

/// A thread for each pack of each place; padding becomes zeros. `bias` (parts * heads * width) is
/// added to the rows; it may be null.
template <class T, int pack>
__global__ void heads_of_rows(const T* rows,
                              const ComputedType<T>* bias,
                              HeadParts<T> heads,
                              HeadPlaces at) {
    using P = Pack<T, pack>;
    const std::uint32_t width = at.width / pack, columns = at.heads * width;
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const std::uint32_t place = i / columns, column = i % columns;
    if (place >= at.samples * at.length)
        return;
    const std::int64_t row = at.row_of == nullptr ? place : at.row_of[place];
    const std::int64_t to = head_place(at, place, column, width);
    const auto* const from = reinterpret_cast<const P*>(rows) + row * at.parts * columns + column;
#pragma unroll  // a constant index: pointers stay in registers
    for (int part = 0; part < most_head_parts; ++part) {
        if (part >= at.parts)
            break;
        P value{};
        if (row >= 0)
            value = from[static_cast<std::int64_t>(part) * columns];
        if (row >= 0 && bias != nullptr)
            value = added<T, pack>(value, bias + (part * columns + column) * pack);
        reinterpret_cast<P*>(heads.of[part])[to] = value;
    }
}

/// The other way round: a thread for each pack of each row. A part that is null counts as zeros.
template <class T, int pack>
__global__ void rows_of_heads(HeadParts<const T> heads, T* rows, HeadPlaces at) {
    using P = Pack<T, pack>;
    const std::uint32_t width = at.width / pack, columns = at.heads * width;
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const std::uint32_t row = i / columns, column = i % columns;
    if (row >= at.rows)
        return;
    const auto place = at.places == nullptr ? row : static_cast<std::uint32_t>(at.places[row]);
    const std::int64_t from = head_place(at, place, column, width);
    auto* const to =
        reinterpret_cast<P*>(rows) + static_cast<std::int64_t>(row) * at.parts * columns + column;
#pragma unroll
    for (int part = 0; part < most_head_parts; ++part) {
        if (part >= at.parts)
            break;
        to[static_cast<std::int64_t>(part) * columns] =
            heads.of[part] == nullptr ? P{} : reinterpret_cast<const P*>(heads.of[part])[from];
    }
}

/// The same, and `sums` (parts * heads * width) of the rows. A thread for a pack of columns of some
/// rows.
template <class T, int pack, class Team>
__global__ __launch_bounds__(Team::threads) void rows_of_heads_and_sums(HeadParts<const T> heads,
                                                                        T* rows,
                                                                        ComputedType<T>* sums,
                                                                        HeadPlaces at) {
    using P = Pack<T, pack>;
    const std::uint32_t width = at.width / pack, columns = at.heads * width;
    const std::uint32_t column = Team::column();
    const bool is_there = column < at.parts * columns;
    const std::uint32_t part = column / columns;
    const T* const from = part == 0 ? heads.of[0] : part == 1 ? heads.of[1] : heads.of[2];
    ComputedType<T> own[pack] = {};
    for (std::uint32_t row = Team::lane(); is_there && row < at.rows; row += Team::lanes) {
        const auto place = at.places == nullptr ? row : static_cast<std::uint32_t>(at.places[row]);
        P value{};
        if (from != nullptr)
            value = reinterpret_cast<const P*>(
                from)[head_place(at, place, column - part * columns, width)];
        reinterpret_cast<P*>(rows)[static_cast<std::int64_t>(row) * at.parts * columns + column] =
            value;
#pragma unroll
        for (int i = 0; i < pack; ++i)
            own[i] += static_cast<ComputedType<T>>(value.values[i]);
    }
#pragma unroll
    for (int i = 0; i < pack; ++i) {
        const ComputedType<T> sum = Team::sum(own[i]);
        if (is_there && Team::lane() == 0)
            sums[column * pack + i] = sum;
    }
}

}  // namespace hetseq::detail
