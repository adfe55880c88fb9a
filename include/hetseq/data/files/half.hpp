#pragma once

#include <cstdint>

namespace hetseq {

constexpr double largest_half = 65504;

/// The value of IEEE binary16 `bits`.
double half_value(std::uint16_t bits) noexcept;
/// `value` rounded to the nearest binary16, ties to even; infinity where it is too large.
std::uint16_t half_bits(double value) noexcept;

}  // namespace hetseq
