#include "hetseq/data/order/tiling.hpp"

#include <cmath>

#include "hetseq/data/order/keyed_permutation.hpp"

namespace hetseq {

namespace {

constexpr unsigned bits = 38;
constexpr std::uint64_t modulus = std::uint64_t{1} << bits;

std::uint64_t hash(const GlobalBatch& batch, std::int64_t border) {
    std::uint64_t key = 0;
    const std::int64_t sample = batch.items && border < batch.items->size()
                                    ? batch.items->samples[static_cast<std::size_t>(border)]
                                    : -1;
    for (const std::int64_t part : {batch.update, batch.epoch, batch.begin, batch.end, sample})
        key = mix_keys(key, static_cast<std::uint64_t>(part));
    return mix_keys(key, static_cast<std::uint64_t>(border)) % modulus;
}

std::uint64_t between(const GlobalBatch& batch, const Slice& slice) {
    return hash(batch, slice.end) - hash(batch, slice.begin);
}

}  // namespace

std::int64_t border_hash(const GlobalBatch& batch, std::int64_t border) {
    return static_cast<std::int64_t>(hash(batch, border));
}

// Unsigned numbers wrap at a multiple of the modulus.
Tiling::Tiling(const GlobalBatch& batch, const Slice& slice, bool takes_away)
    : samples_{static_cast<std::uint64_t>(slice.size())}, borders_{between(batch, slice)} {
    if (!takes_away)
        return;
    samples_ -= static_cast<std::uint64_t>(batch.size());
    borders_ -= between(batch, {batch.begin, batch.end});
}

void Tiling::add(const Tiling& other) {
    samples_ += other.samples_;
    borders_ += other.borders_;
}

std::array<double, Tiling::terms> Tiling::values() const {
    return {static_cast<double>(samples_ % modulus), static_cast<double>(borders_ % modulus)};
}

bool Tiling::holds(std::span<const double> sums) {
    for (const double sum : sums)
        if (std::fmod(sum, static_cast<double>(modulus)) != 0)
            return false;
    return true;
}

}  // namespace hetseq
