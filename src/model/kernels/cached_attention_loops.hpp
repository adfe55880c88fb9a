#pragma once

#include <algorithm>
#include <cstdint>

#include "matrix_loops.hpp"

namespace hetseq::detail {

/// The width of a head, and of its values in memory.
struct HeadShape {
    std::int64_t heads = 1;
    std::int64_t width = 1;

    std::int64_t all() const { return heads * width; }
    template <class T>
    std::int64_t padded_values() const {
        return heads * whole_groups<T>(width);
    }
};

/// Keys and values of one sequence's positions. Keys lie in groups: an element of `group_width`
/// positions side by side. What is behind the last position is finite.
template <class T>
struct CachedKeys {
    const T* keys = nullptr;    // (groups, heads * width, group_width)
    const T* values = nullptr;  // (groups * group_width, heads, width filled up to whole groups)
    std::int64_t groups = 0;
};

/// Attention of `rows` queries to one sequence. Query i sees position j where kept(i, j) is 1; it
/// sees one at least.
template <class T>
struct CachedAttention {
    const T* queries = nullptr;  // (rows, heads * width), rows `query_stride` apart
    std::int64_t query_stride = 0;
    std::int64_t rows = 0;
    CachedKeys<T> cache;
    const T* kept = nullptr;  // (rows, groups * group_width): 1 or 0, rows `kept_stride` apart
    std::int64_t kept_stride = 0;
    T* scratch = nullptr;  // `attention_scratch` elements
    T* out = nullptr;      // (rows, heads * width), rows `out_stride` apart
    std::int64_t out_stride = 0;
};

/// Queries that are computed together.
inline constexpr int attention_rows = 5;

template <class T>
constexpr std::int64_t attention_scratch(std::int64_t groups) {
    return attention_rows * groups * group_width<T>;
}

/// Writes one position's key (heads * width).
template <class T>
void store_key(const T* key, const HeadShape& shape, std::int64_t position, T* keys) {
    constexpr std::int64_t group = group_width<T>;
    T* to = keys + position / group * group * shape.all() + position % group;
    for (std::int64_t i = 0; i < shape.all(); ++i)
        to[i * group] = key[i];
}

/// Writes one position's value (heads * width).
template <class T>
void store_value(const T* value, const HeadShape& shape, std::int64_t position, T* values) {
    const std::int64_t padded = whole_groups<T>(shape.width);
    T* to = values + position * shape.heads * padded;
    for (std::int64_t head = 0; head < shape.heads; ++head)
        std::copy_n(value + head * shape.width, shape.width, to + head * padded);
}

/// Scaled dot-product attention, head by head.
void attend(const CachedAttention<float>& attention, const HeadShape& shape);
void attend(const CachedAttention<double>& attention, const HeadShape& shape);

}  // namespace hetseq::detail
