#include "cached_attention_loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "hetseq/util/vector_clones.hpp"

#include "fast_exp.hpp"

namespace hetseq::detail {

namespace {

template <class T>
struct GroupOf {
    using Type __attribute__((vector_size(64))) = T;
};
template <class T>
using Group = typename GroupOf<T>::Type;

template <class T>
HETSEQ_ALWAYS_INLINE void load(const T* from, Group<T>& group) {
    std::memcpy(&group, from, sizeof(group));
}

// scores (Rows, positions) of one head.
template <class T, int Rows>
HETSEQ_ALWAYS_INLINE void score(const CachedAttention<T>& attention,
                                const T* queries,
                                const HeadShape& shape,
                                std::int64_t head,
                                T scale) {
    const std::int64_t positions = attention.cache.groups * group_width<T>;
    const T* keys = attention.cache.keys + head * shape.width * group_width<T>;
    const T* query = queries + head * shape.width;
    for (std::int64_t group = 0; group < attention.cache.groups; ++group) {
        Group<T> sums[Rows] = {};
        for (std::int64_t i = 0; i < shape.width; ++i) {
            Group<T> key;
            load(keys + i * group_width<T>, key);
#pragma GCC unroll 8
            for (int row = 0; row < Rows; ++row)
                sums[row] += key * query[row * attention.query_stride + i];
        }
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
            sums[row] *= scale;
            std::memcpy(attention.scratch + row * positions + group * group_width<T>,
                        &sums[row],
                        sizeof(sums[row]));
        }
        keys += shape.all() * group_width<T>;
    }
}

// Replaces scores by exp(score - highest), 0 where nothing is kept; returns 1 / sum.
template <class T>
HETSEQ_ALWAYS_INLINE T exponentiate(T* scores, const T* kept, std::int64_t positions) {
    constexpr int lanes = static_cast<int>(group_width<T>);
    T high[lanes], total[lanes] = {};
    for (T& value : high)
        value = T(-1e30);
    for (std::int64_t i = 0; i < positions; i += lanes)
        for (int lane = 0; lane < lanes; ++lane) {
            const T value = kept[i + lane] != T(0) ? scores[i + lane] : T(-1e30);
            high[lane] = value > high[lane] ? value : high[lane];
        }
    T highest = high[0];
    for (const T value : high)
        highest = value > highest ? value : highest;
    for (std::int64_t i = 0; i < positions; i += lanes)
        for (int lane = 0; lane < lanes; ++lane) {
            const T below = scores[i + lane] - highest;
            const T power = fast_exp(below < T(0) ? below : T(0)) * kept[i + lane];
            scores[i + lane] = power;
            total[lane] += power;
        }
    T sum = 0;
    for (const T value : total)
        sum += value;
    return T(1) / sum;
}

// One group of each row's output: the values weighted by the scores.
template <class T, int Rows>
HETSEQ_ALWAYS_INLINE void weigh(const CachedAttention<T>& attention,
                                const T* values,
                                std::int64_t value_stride,
                                const T* factors,
                                T* out,
                                std::int64_t count) {
    const std::int64_t positions = attention.cache.groups * group_width<T>;
    Group<T> sums[Rows] = {};
    for (std::int64_t position = 0; position < positions; ++position) {
        Group<T> value;
        load(values + position * value_stride, value);
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row)
            sums[row] += value * attention.scratch[row * positions + position];
    }
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row) {
        sums[row] *= factors[row];
        T* to = out + row * attention.out_stride;
        if (count == group_width<T>)
            std::memcpy(to, &sums[row], sizeof(sums[row]));
        else
            std::memcpy(to, &sums[row], static_cast<std::size_t>(count) * sizeof(T));
    }
}

template <class T, int Rows>
HETSEQ_ALWAYS_INLINE void attend_rows(const CachedAttention<T>& attention,
                                      const HeadShape& shape,
                                      std::int64_t first) {
    const std::int64_t positions = attention.cache.groups * group_width<T>;
    const std::int64_t stride = shape.padded_values<T>();
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(shape.width)));
    for (std::int64_t head = 0; head < shape.heads; ++head) {
        score<T, Rows>(
            attention, attention.queries + first * attention.query_stride, shape, head, scale);
        T factors[Rows];
        for (int row = 0; row < Rows; ++row)
            factors[row] = exponentiate(attention.scratch + row * positions,
                                        attention.kept + (first + row) * attention.kept_stride,
                                        positions);
        for (std::int64_t i = 0; i < shape.width; i += group_width<T>)
            weigh<T, Rows>(attention,
                           attention.cache.values + head * whole_groups<T>(shape.width) + i,
                           stride,
                           factors,
                           attention.out + first * attention.out_stride + head * shape.width + i,
                           std::min(group_width<T>, shape.width - i));
    }
}

template <class T>
HETSEQ_ALWAYS_INLINE void attend_all(const CachedAttention<T>& attention, const HeadShape& shape) {
    static_assert(attention_rows == 5);
    std::int64_t row = 0;
    for (; row + 5 <= attention.rows; row += 5)
        attend_rows<T, 5>(attention, shape, row);
    switch (attention.rows - row) {
        case 4:
            return attend_rows<T, 4>(attention, shape, row);
        case 3:
            return attend_rows<T, 3>(attention, shape, row);
        case 2:
            return attend_rows<T, 2>(attention, shape, row);
        case 1:
            return attend_rows<T, 1>(attention, shape, row);
        default:
            return;
    }
}

}  // namespace

HETSEQ_VECTOR_CLONES
void attend(const CachedAttention<float>& attention, const HeadShape& shape) {
    attend_all(attention, shape);
}

HETSEQ_VECTOR_CLONES
void attend(const CachedAttention<double>& attention, const HeadShape& shape) {
    attend_all(attention, shape);
}

}  // namespace hetseq::detail
