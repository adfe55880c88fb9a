#pragma once

#include <cstdint>

// A function that kernels call too: nvcc compiles it for the GPU, other compilers for the host.
#if defined(__CUDACC__)
#define HETSEQ_HOST_DEVICE __host__ __device__
#else
#define HETSEQ_HOST_DEVICE
#endif

namespace hetseq {

struct PhiloxCounter {
    std::uint32_t word[4];
};

struct PhiloxKey {
    std::uint32_t word[2];
};

namespace detail {
inline constexpr std::uint32_t philox_multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
inline constexpr std::uint32_t philox_weyl[2] = {0x9E3779B9u, 0xBB67AE85u};
inline constexpr int philox_rounds = 10;
}  // namespace detail

/// Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"):
/// 128 random bits that are a function of a 128-bit counter and a 64-bit key.
HETSEQ_HOST_DEVICE inline PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
    constexpr std::uint64_t multiplier0 = detail::philox_multiplier[0];
    constexpr std::uint64_t multiplier1 = detail::philox_multiplier[1];
    constexpr std::uint32_t weyl0 = detail::philox_weyl[0];  // device code knows no host array
    constexpr std::uint32_t weyl1 = detail::philox_weyl[1];
    for (int round = 0; round < detail::philox_rounds; ++round) {
        const std::uint64_t product0 = multiplier0 * counter.word[0];
        const std::uint64_t product1 = multiplier1 * counter.word[2];
        counter = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key.word[0],
                    static_cast<std::uint32_t>(product1),
                    static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key.word[1],
                    static_cast<std::uint32_t>(product0)}};
        key.word[0] += weyl0;
        key.word[1] += weyl1;
    }
    return counter;
}

}  // namespace hetseq
