#include "hetseq/data/order/keyed_permutation.hpp"

#include "hetseq/util/error.hpp"
#include "hetseq/util/split_mix.hpp"

namespace hetseq {

namespace {

constexpr std::uint64_t golden_gamma = 0x9E3779B97F4A7C15U;

}  // namespace

std::uint64_t mix_keys(std::uint64_t a, std::uint64_t b) noexcept {
    return split_mix(split_mix(a + golden_gamma) + b + golden_gamma);
}

KeyedPermutation::KeyedPermutation(std::int64_t n, std::uint64_t key) : n_{n} {
    HETSEQ_ASSERT(n >= 1 && n <= (std::int64_t{1} << 62));
    while (half_bits_ < 31 && (std::int64_t{1} << (2 * half_bits_)) < n)
        ++half_bits_;
    half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
    for (int round = 0; round < rounds; ++round)
        round_keys_[round] = mix_keys(key, static_cast<std::uint64_t>(round));
}

std::uint64_t KeyedPermutation::encrypt(std::uint64_t value) const noexcept {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & half_mask_;
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t next = left ^ (split_mix(right + round_keys_[round]) & half_mask_);
        left = right;
        right = next;
    }
    return (left << half_bits_) | right;
}

std::uint64_t KeyedPermutation::decrypt(std::uint64_t value) const noexcept {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & half_mask_;
    for (int round = rounds - 1; round >= 0; --round) {
        const std::uint64_t previous = right ^ (split_mix(left + round_keys_[round]) & half_mask_);
        right = left;
        left = previous;
    }
    return (left << half_bits_) | right;
}

std::int64_t KeyedPermutation::operator()(std::int64_t index) const {
    HETSEQ_ASSERT(index >= 0 && index < n_);
    auto value = static_cast<std::uint64_t>(index);
    do {
        value = encrypt(value);
    } while (value >= static_cast<std::uint64_t>(n_));
    return static_cast<std::int64_t>(value);
}

std::int64_t KeyedPermutation::inverse(std::int64_t element) const {
    HETSEQ_ASSERT(element >= 0 && element < n_);
    auto value = static_cast<std::uint64_t>(element);
    do {
        value = decrypt(value);
    } while (value >= static_cast<std::uint64_t>(n_));
    return static_cast<std::int64_t>(value);
}

}  // namespace hetseq
