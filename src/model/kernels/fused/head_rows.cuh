// Between rows of tokens and the heads of attention, on a GPU.
#pragma once

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

/// A thread for each pack of each place; padding becomes zeros.
template <class T, int pack>
__global__ void heads_of_rows(const T* rows, HeadParts<T> heads, HeadPlaces at) {
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

}  // namespace hetseq::detail
