#include "values.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "../cuda/runtime.hpp"

namespace hetseq::stand_in {

namespace {

// The upper half of a float.
class Bf16 {
public:
    Bf16& operator+=(Bf16 other) {
        const auto bits = std::bit_cast<std::uint32_t>(value() + other.value());
        const bool is_nan = std::isnan(std::bit_cast<float>(bits));
        const std::uint32_t to_even = 0x7fff + (bits >> 16 & 1);
        bits_ = static_cast<std::uint16_t>((is_nan ? bits | 0x10000 : bits + to_even) >> 16);
        return *this;
    }

private:
    float value() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

    std::uint16_t bits_;
};

// IEEE 754's binary16.
class Fp16 {
public:
    Fp16& operator+=(Fp16 other) {
        const float sum = value() + other.value();
        bits_ = static_cast<std::uint16_t>((std::signbit(sum) ? 0x8000 : 0) |
                                           magnitude_bits(std::abs(sum)));
        return *this;
    }

private:
    static constexpr int fraction_bits = 10;
    static constexpr int least_exponent = -14;  // of normal numbers
    static constexpr int infinity = 0x7c00;

    float value() const {
        const int exponent = bits_ >> fraction_bits & 0x1f;
        const int fraction = bits_ & 0x3ff;
        float magnitude = std::ldexp(static_cast<float>(fraction), least_exponent - fraction_bits);
        if (exponent == 0x1f)
            magnitude = fraction == 0 ? INFINITY : NAN;
        else if (exponent > 0)
            magnitude = std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)),
                                   exponent - 1 + least_exponent - fraction_bits);
        return (bits_ & 0x8000) != 0 ? -magnitude : magnitude;
    }

    // Rounded to the nearest, ties to even, as nearbyint does.
    static int magnitude_bits(float magnitude) {
        if (std::isnan(magnitude))
            return infinity | 0x200;
        if (magnitude >= 65520)  // half a step above the largest
            return infinity;
        const int exponent =
            magnitude == 0 ? least_exponent : std::max(std::ilogb(magnitude), least_exponent);
        const auto steps =
            static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
        // A normal number's leading bit, 1 << fraction_bits, adds one to the exponent.
        return ((exponent - least_exponent) << fraction_bits) + steps;
    }

    std::uint16_t bits_;
};

template <class T>
Addition addition_of(std::size_t count) {
    return [count](void* sum, const void* part) {
        auto* const to = static_cast<T*>(sum);
        const auto* const from = static_cast<const T*>(part);
        for (std::size_t i = 0; i < count; ++i)
            to[i] += from[i];
    };
}

}  // namespace

// Those of 16 bits are rounded at each rank, as around a ring.
Addition addition(ncclDataType_t type, ncclRedOp_t operation, std::size_t count) {
    if (operation == ncclSum && type == ncclFloat32)
        return addition_of<float>(count);
    if (operation == ncclSum && type == ncclFloat64)
        return addition_of<double>(count);
    if (operation == ncclSum && type == ncclBfloat16)
        return addition_of<Bf16>(count);
    if (operation == ncclSum && type == ncclFloat16)
        return addition_of<Fp16>(count);
    report_misuse("a reduction that the stand-in does not imitate");
    return {};
}

std::size_t size_of(ncclDataType_t type) {
    switch (type) {
        case ncclFloat32:
            return sizeof(float);
        case ncclFloat64:
            return sizeof(double);
        case ncclBfloat16:
            return sizeof(Bf16);
        case ncclFloat16:
            return sizeof(Fp16);
        default:
            return 1;
    }
}

}  // namespace hetseq::stand_in
