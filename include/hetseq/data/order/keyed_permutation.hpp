#pragma once

#include <array>
#include <cstdint>

namespace hetseq {

/// A keyed permutation of [0, n) with random access and no memory: a balanced Feistel network over
/// the next even power of two, walked until it falls inside (Black & Rogaway 2002, "Ciphers with
/// arbitrary finite domains"). It uses only integer arithmetic, so it is the same on every machine.
class KeyedPermutation {
public:
    /// `n` in [1, 2^62].
    KeyedPermutation(std::int64_t n, std::uint64_t key);

    std::int64_t size() const noexcept { return n_; }
    /// The element at `index`, both in [0, n). A bijection.
    std::int64_t operator()(std::int64_t index) const;
    /// The index of `element`: `inverse((*this)(i)) == i`.
    std::int64_t inverse(std::int64_t element) const;

private:
    static constexpr int rounds = 6;

    std::uint64_t encrypt(std::uint64_t value) const noexcept;
    std::uint64_t decrypt(std::uint64_t value) const noexcept;

    std::int64_t n_ = 0;
    int half_bits_ = 1;
    std::uint64_t half_mask_ = 1;
    std::array<std::uint64_t, rounds> round_keys_{};
};

/// Mixes two words into one key (the finalizer of SplitMix64; Steele, Lea & Flood 2014).
std::uint64_t mix_keys(std::uint64_t a, std::uint64_t b) noexcept;

}  // namespace hetseq
