#include "softmax_loops.hpp"

#include <bit>
#include <cmath>

#include "hetseq/util/vector_clones.hpp"

namespace hetseq::detail {

namespace {

constexpr int lanes = 32;

// exp(x) for x <= 88, in plain arithmetic that the compiler vectorises: 2^k e^r with
// |r| <= ln(2)/2, e^r by the polynomial of Cephes' expf (Moshier 1989). Relative error below 2e-7.
HETSEQ_ALWAYS_INLINE float fast_exp(float x) {
    constexpr float log2_e = 1.44269504088896341f;
    constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    constexpr float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    x = x < -87.0f ? -87.0f : x;
    const float shifted = x * log2_e + rounder;
    const float k = shifted - rounder;
    const float r = (x - k * ln2_high) - k * ln2_low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const auto exponent = static_cast<std::uint32_t>(std::bit_cast<std::int32_t>(shifted)) << 23U;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
}

HETSEQ_ALWAYS_INLINE double fast_exp(double x) {
    return std::exp(x);
}

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
