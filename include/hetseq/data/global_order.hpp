#pragma once

#include <cstdint>

namespace hetseq {

/// A keyed permutation of [0, n) with random access and no memory: a balanced Feistel network over
/// the next even power of two, walked until it falls inside (Black & Rogaway 2002, "Ciphers with
/// arbitrary finite domains").
class KeyedPermutation {
public:
    KeyedPermutation(std::int64_t n, std::uint64_t key);
    std::int64_t size() const noexcept { return n_; }
    /// `index` in [0, n). A bijection.
    std::int64_t operator()(std::int64_t index) const;

private:
    std::int64_t n_ = 0;
    std::uint64_t key_ = 0;
    int half_bits_ = 1;
};

enum class Shuffle { yes, no };

/// Which sample stands at each position of an epoch: blocks are permuted, then the samples inside
/// each group of `shuffle_blocks` consecutive permuted blocks. A function of (samples, block
/// length, shuffle_blocks, seed, epoch) alone; O(1) memory and time. The ragged last block keeps
/// its length wherever it lands.
class GlobalOrder {
public:
    struct Geometry {
        std::int64_t samples = 0;
        std::int64_t block_length = 1;  // samples
        std::int64_t shuffle_blocks = 8;
    };

    GlobalOrder(const Geometry& geometry,
                std::uint64_t seed,
                std::int64_t epoch,
                Shuffle shuffle = Shuffle::yes);

    std::int64_t size() const noexcept { return geometry_.samples; }
    /// The sample at `position`, both in [0, samples).
    std::int64_t operator()(std::int64_t position) const;
    /// The group of blocks that `position` is drawn from.
    std::int64_t group_of(std::int64_t position) const;
    /// [begin, end) of the positions that `group` fills.
    std::int64_t group_begin(std::int64_t group) const;
    std::int64_t group_end(std::int64_t group) const;

private:
    Geometry geometry_;
    std::uint64_t key_ = 0;
    Shuffle shuffle_ = Shuffle::yes;
    KeyedPermutation blocks_;
    std::int64_t ragged_slot_ =
        -1;  // where the ragged last block lands among the permuted blocks; -1: none is ragged
};

}  // namespace hetseq
