// Rows of several tables, summed, and dropout on a GPU.
#pragma once

#include "row_team.cuh"

namespace hetseq::detail {

/// dropout(scale * words[ids] + positions + segments[segment_ids]) in one or two types.
template <class T, class Team>
__global__ void embedding_sum(EmbeddingTables<ComputedType<T>> tables,
                              ComputedType<T>* wide,
                              T* narrow,
                              TokenPlaces places) {
    using Value = ComputedType<T>;
    const std::uint32_t row = row_of_team<Team>();
    if (row >= places.rows)
        return;
    const std::int64_t begin = static_cast<std::int64_t>(row) * places.columns;
    const Value* const word = tables.words + tables.ids[row] * places.columns;
    const Value* const position = tables.positions + tables.position_of(row) * places.columns;
    const Value* const segment = tables.segments == nullptr
                                     ? nullptr
                                     : tables.segments + tables.segment_ids[row] * places.columns;
    const auto scale = static_cast<Value>(tables.scale);
    const auto keep_scale = static_cast<Value>(places.keep_scale);
    for_each_element<Team>(
        places.mask, places.dropout_of(row), places.columns, [&](std::uint32_t column, bool kept) {
            Value value = word[column] * scale + position[column];
            if (segment != nullptr)
                value += segment[column];
            value = kept ? value * keep_scale : Value(0);
            wide[begin + column] = value;
            if (narrow != nullptr)
                narrow[begin + column] = static_cast<T>(value);
        });
}

/// The gradient in front of dropout, times `scale`, of those of an output in two types. Either may
/// be null.
template <class T, class Team>
__global__ void outputs_backward(const ComputedType<T>* of_wide,
                                 const T* of_narrow,
                                 ComputedType<T>* out,
                                 double scale,
                                 TokenPlaces places) {
    using Value = ComputedType<T>;
    const std::uint32_t row = row_of_team<Team>();
    if (row >= places.rows)
        return;
    const std::int64_t begin = static_cast<std::int64_t>(row) * places.columns;
    const auto factor = static_cast<Value>(places.keep_scale * scale);
    for_each_element<Team>(
        places.mask, places.dropout_of(row), places.columns, [&](std::uint32_t column, bool kept) {
            const std::int64_t i = begin + column;
            out[i] = kept ? sum_of(of_wide, of_narrow, i) * factor : Value(0);
        });
}

}  // namespace hetseq::detail
