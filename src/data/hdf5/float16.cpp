#include "hetseq/data/hdf5/float16.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hetseq {

namespace {

constexpr unsigned sign_bit = 0x8000;
constexpr unsigned infinity_bits = 0x7c00;
constexpr int mantissa_bits = 10;
constexpr int bias = 15;

}  // namespace

double float16_value(std::uint16_t bits) noexcept {
    const double sign = (bits & sign_bit) != 0 ? -1 : 1;
    const int exponent = (bits & infinity_bits) >> mantissa_bits;
    const int mantissa = bits & 0x3ff;
    if (exponent == 31)
        return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    const int whole = exponent > 0 ? mantissa + 1024 : mantissa;  // a subnormal has no leading one
    return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
}

std::uint16_t float16_bits(double value) noexcept {
    const unsigned sign = std::signbit(value) ? sign_bit : 0;
    const double size = std::abs(value);
    if (std::isnan(value))
        return static_cast<std::uint16_t>(sign | infinity_bits | 0x200);
    if (size >= 65520)  // halfway from the largest to what would be the next
        return static_cast<std::uint16_t>(sign | infinity_bits);
    const int exponent = size == 0 ? 1 : std::max(std::ilogb(size) + bias, 1);
    const auto whole =
        static_cast<unsigned>(std::nearbyint(std::ldexp(size, bias + mantissa_bits - exponent)));
    // A mantissa that was rounded up to the next power of two carries into the exponent.
    return static_cast<std::uint16_t>(
        sign | ((static_cast<unsigned>(exponent - 1) << mantissa_bits) + whole));
}

}  // namespace hetseq
