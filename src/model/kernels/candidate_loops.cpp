#include "candidate_loops.hpp"

#include <algorithm>
#include <cmath>

#include "hetseq/util/vector_clones.hpp"

#include "fast_exp.hpp"

namespace hetseq::detail {

namespace {

constexpr int scan_lanes = static_cast<int>(highest_lanes);

// Of one block, the last of which may be short.
template <class T>
HETSEQ_ALWAYS_INLINE void highest_of_block(const T* values, std::int64_t count, T* highest) {
    T high[scan_lanes];
    for (T& value : high)
        value = -std::numeric_limits<T>::infinity();
    const std::int64_t even = count - count % scan_lanes;
    for (std::int64_t i = 0; i < even; i += scan_lanes)
        for (int lane = 0; lane < scan_lanes; ++lane)
            high[lane] = values[i + lane] > high[lane] ? values[i + lane] : high[lane];
    for (std::int64_t i = even; i < count; ++i)
        high[i - even] = values[i] > high[i - even] ? values[i] : high[i - even];
    for (int lane = 0; lane < scan_lanes; ++lane)
        highest[lane] = high[lane];
}

// Sums go by lanes, so that they need no order that the compiler may not change.
template <class T>
HETSEQ_ALWAYS_INLINE double sum_of_powers(const T* values, std::int64_t count, T high) {
    constexpr int wide = 2 * scan_lanes;
    T powers[wide] = {};
    const std::int64_t even = count - count % wide;
    for (std::int64_t i = 0; i < even; i += wide)
        for (int lane = 0; lane < wide; ++lane)
            powers[lane] += fast_exp(values[i + lane] - high);
    double sum = 0;
    for (const T power : powers)
        sum += static_cast<double>(power);
    for (std::int64_t i = even; i < count; ++i)
        sum += static_cast<double>(fast_exp(values[i] - high));
    return sum;
}

template <class T>
HETSEQ_ALWAYS_INLINE PowerSum power_sum_of(const T* values, std::int64_t count, T* highest) {
    T high = -std::numeric_limits<T>::infinity();
    for (std::int64_t begin = 0; begin < count; begin += highest_block) {
        T* of_block = highest + highest_index(begin);
        highest_of_block(values + begin, std::min(highest_block, count - begin), of_block);
        for (int lane = 0; lane < scan_lanes; ++lane)
            high = of_block[lane] > high ? of_block[lane] : high;
    }
    return {static_cast<double>(high), sum_of_powers(values, count, high)};
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
    for (std::int64_t at = 0; at < highest_count(count); ++at) {
        if (!(highest[at] > largest.smallest()))
            continue;
        const std::int64_t block = at / highest_lanes * highest_block;
        const std::int64_t end = std::min(block + highest_block, count);
        for (std::int64_t i = block + at % highest_lanes; i < end; i += highest_lanes)
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
