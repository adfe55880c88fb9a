#include "softmax_loops.hpp"

#include <cmath>

#include "hetseq/util/vector_clones.hpp"

#include "fast_exp.hpp"

namespace hetseq::detail {

namespace {

constexpr int lanes = 32;

// Sums go by lanes, so that they need no order that the compiler may not change.
template <class T>
HETSEQ_ALWAYS_INLINE RowSums sums_of(const T* logits, std::int64_t count) {
    T high[lanes], total[lanes] = {}, powers[lanes] = {};
    for (T& value : high)
        value = logits[0];
    const std::int64_t even = count - count % lanes;
    for (std::int64_t i = 0; i < even; i += lanes)
        for (int lane = 0; lane < lanes; ++lane) {
            const T value = logits[i + lane];
            high[lane] = value > high[lane] ? value : high[lane];
            total[lane] += value;
        }
    T highest = high[0];
    for (const T value : high)
        highest = value > highest ? value : highest;
    double sum = 0;
    for (const T value : total)
        sum += static_cast<double>(value);
    for (std::int64_t i = even; i < count; ++i) {
        highest = logits[i] > highest ? logits[i] : highest;
        sum += static_cast<double>(logits[i]);
    }
    for (std::int64_t i = 0; i < even; i += lanes)
        for (int lane = 0; lane < lanes; ++lane)
            powers[lane] += fast_exp(logits[i + lane] - highest);
    double power = 0;
    for (const T value : powers)
        power += static_cast<double>(value);
    for (std::int64_t i = even; i < count; ++i)
        power += static_cast<double>(fast_exp(logits[i] - highest));
    std::int64_t largest = 0;
    while (largest < count - 1 && logits[largest] != highest)
        ++largest;
    return {static_cast<double>(highest) + std::log(power), sum, largest};
}

template <class T>
HETSEQ_ALWAYS_INLINE void subtract(T* logits, std::int64_t count, double log_sum_exp, double by) {
    const T offset = static_cast<T>(log_sum_exp), shift = static_cast<T>(by);
    for (std::int64_t i = 0; i < count; ++i)
        logits[i] = fast_exp(logits[i] - offset) - shift;
}

}  // namespace

HETSEQ_VECTOR_CLONES
RowSums row_sums(const float* logits, std::int64_t count) {
    return sums_of(logits, count);
}

HETSEQ_VECTOR_CLONES
RowSums row_sums(const double* logits, std::int64_t count) {
    return sums_of(logits, count);
}

HETSEQ_VECTOR_CLONES
void softmax_minus(float* logits, std::int64_t count, double log_sum_exp, double shift) {
    subtract(logits, count, log_sum_exp, shift);
}

HETSEQ_VECTOR_CLONES
void softmax_minus(double* logits, std::int64_t count, double log_sum_exp, double shift) {
    subtract(logits, count, log_sum_exp, shift);
}

}  // namespace hetseq::detail
