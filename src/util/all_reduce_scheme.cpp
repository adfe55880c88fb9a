#include "hetseq/util/all_reduce_scheme.hpp"

namespace hetseq {

namespace {

constexpr std::size_t largest_doubled = std::size_t{32} << 10;  // bytes: one exchange of everything
constexpr std::int64_t most_direct_ranks = 64;                  // each of which talks to all others

bool is_power_of_two(std::int64_t n) noexcept {
    return (n & (n - 1)) == 0;
}

}  // namespace

AllReduceScheme all_reduce_scheme(std::size_t bytes, std::int64_t ranks) noexcept {
    if (bytes <= largest_doubled)
        return AllReduceScheme::doubling;
    if (ranks > most_direct_ranks)
        return AllReduceScheme::hierarchical;
    return bytes <= largest_direct_bytes ? AllReduceScheme::direct : AllReduceScheme::ring;
}

int halving_levels(std::int64_t n) noexcept {
    int count = 0;
    for (std::int64_t reached = 1; reached < n; reached *= 2)
        ++count;
    return count;
}

std::int64_t halving_parts(std::int64_t hosts) noexcept {
    std::int64_t parts = 0;
    for (std::int64_t n = hosts; n > 1; n = (n + 1) / 2)
        parts += (n + 1) / 2;
    return parts;
}

std::int64_t all_reduce_steps(AllReduceScheme scheme,
                              std::int64_t ranks,
                              std::int64_t hosts,
                              std::int64_t largest_host) noexcept {
    if (ranks <= 1)
        return 0;
    switch (scheme) {
        case AllReduceScheme::doubling:
            // The ranks beyond a power of two come before it and after it.
            return is_power_of_two(ranks) ? halving_levels(ranks) : halving_levels(ranks) + 1;
        case AllReduceScheme::direct:
            return 2;
        case AllReduceScheme::ring:
            return 2 * (ranks - 1);
        case AllReduceScheme::hierarchical:
            break;
    }
    return 2 * (halving_levels(hosts) + (largest_host > 1 ? 1 : 0));
}

}  // namespace hetseq
