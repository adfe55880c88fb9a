#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "hetseq/util/vector_clones.hpp"

namespace hetseq::detail {

/// exp(x) for x <= 88, in plain arithmetic that the compiler vectorises: 2^k e^r with
/// |r| <= ln(2)/2, e^r by the polynomial of Cephes' expf (Moshier 1989). Relative error below 2e-7.
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

}  // namespace hetseq::detail
