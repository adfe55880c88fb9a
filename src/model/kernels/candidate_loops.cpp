#include "candidate_loops.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/vector_clones.hpp"

#include "fast_exp.hpp"

namespace hetseq::detail {

namespace {

template <class T>
HETSEQ_ALWAYS_INLINE T highest_of_piece(const T* values) {
    constexpr int half = static_cast<int>(piece) / 2;
    T high[half];
    for (int i = 0; i < half; ++i)
        high[i] = values[i] > values[i + half] ? values[i] : values[i + half];
    for (int step = half / 2; step > 0; step /= 2)
        for (int i = 0; i < step; ++i)
            high[i] = high[i] > high[i + step] ? high[i] : high[i + step];
    return high[0];
}

template <class T>
HETSEQ_ALWAYS_INLINE T highest_of_rest(const T* values, std::int64_t count) {
    return *std::max_element(values, values + count);
}

// Sums go by lanes, so that they need no order that the compiler may not change.
template <class T>
HETSEQ_ALWAYS_INLINE PowerSum power_sum_of(const T* values, std::int64_t count, T* highest) {
    const std::int64_t even = count - count % piece;
    for (std::int64_t i = 0; i < even; i += piece)
        highest[i / piece] = highest_of_piece(values + i);
    if (even < count)
        highest[even / piece] = highest_of_rest(values + even, count - even);
    const T high = highest_of_rest(highest, (count + piece - 1) / piece);
    T powers[piece] = {};
    for (std::int64_t i = 0; i < even; i += piece)
        for (int lane = 0; lane < piece; ++lane)
            powers[lane] += fast_exp(values[i + lane] - high);
    double sum = 0;
    for (const T power : powers)
        sum += static_cast<double>(power);
    for (std::int64_t i = even; i < count; ++i)
        sum += static_cast<double>(fast_exp(values[i] - high));
    return {static_cast<double>(high), sum};
}

}  // namespace

template <class T>
void LargestValues<T>::insert(T value, std::int32_t id) {
    std::size_t at = values_.size() - 1;
    for (; at > 0 && values_[at - 1] < value; --at) {
        values_[at] = values_[at - 1];
        ids_[at] = ids_[at - 1];
    }
    values_[at] = value;
    ids_[at] = id;
}

template <class T>
void LargestValues<T>::insert(const LargestValues& others) {
    for (std::size_t i = 0; i < others.values_.size() && others.values_[i] > smallest(); ++i)
        insert(others.values_[i], others.ids_[i]);
}

template class LargestValues<float>;
template class LargestValues<double>;

HETSEQ_VECTOR_CLONES
PowerSum power_sum(const float* values, std::int64_t count, float* highest) {
    return power_sum_of(values, count, highest);
}

HETSEQ_VECTOR_CLONES
PowerSum power_sum(const double* values, std::int64_t count, double* highest) {
    return power_sum_of(values, count, highest);
}

template <class T>
void take_largest(const T* values,
                  std::int64_t count,
                  const T* highest,
                  std::int32_t first_id,
                  LargestValues<T>& largest) {
    for (std::int64_t begin = 0; begin < count; begin += piece) {
        if (!(highest[begin / piece] > largest.smallest()))
            continue;
        const std::int64_t end = std::min(begin + piece, count);
        for (std::int64_t i = begin; i < end; ++i)
            if (values[i] > largest.smallest())
                largest.insert(values[i], first_id + static_cast<std::int32_t>(i));
    }
}

template void take_largest(
    const float*, std::int64_t, const float*, std::int32_t, LargestValues<float>&);
template void take_largest(
    const double*, std::int64_t, const double*, std::int32_t, LargestValues<double>&);

double log_sum(const PowerSum* sums, std::int64_t count) {
    double highest = sums[0].highest;
    for (std::int64_t i = 1; i < count; ++i)
        highest = std::max(highest, sums[i].highest);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
        sum += sums[i].sum * std::exp(sums[i].highest - highest);
    return highest + std::log(sum);
}

}  // namespace hetseq::detail
