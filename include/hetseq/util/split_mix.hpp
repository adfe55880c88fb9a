#pragma once

#include <cstdint>

namespace hetseq {

/// SplitMix64's finaliser, a bijection of 64 bits (Steele, Lea & Flood 2014, "Fast splittable
/// pseudorandom number generators").
constexpr std::uint64_t split_mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
}

}  // namespace hetseq
