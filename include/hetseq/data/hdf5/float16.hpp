#pragma once

#include <cstdint>

namespace hetseq {

constexpr double largest_float16 = 65504;

/// The value of IEEE binary16 `bits`.
double float16_value(std::uint16_t bits) noexcept;
/// `value` rounded to the nearest binary16, ties to even; infinity where it is too large.
std::uint16_t float16_bits(double value) noexcept;

}  // namespace hetseq
