#pragma once

#include <cstdint>

#include "hetseq/data/order/keyed_permutation.hpp"

namespace hetseq {

/// Random numbers of one key, the same on every machine: each is a function of the key and of how
/// many were drawn before it.
class KeyedDraws {
public:
    explicit KeyedDraws(std::uint64_t key) : key_{key} {}

    /// In [0, n), n >= 1.
    std::int64_t below(std::int64_t n) {
        return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n));
    }
    /// In [0, 1).
    double fraction() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

private:
    std::uint64_t next() { return mix_keys(key_, count_++); }

    std::uint64_t key_;
    std::uint64_t count_ = 0;
};

}  // namespace hetseq
