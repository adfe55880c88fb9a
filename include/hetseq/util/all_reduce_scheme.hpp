#pragma once

#include <cstddef>
#include <cstdint>

namespace hetseq {

/// How ranks sum a tensor in host memory (docs/mpi.md).
enum class AllReduceScheme {
    doubling,      // of everything
    direct,        // each rank sums a share of the values and sends it to all
    ring,          // of all ranks
    hierarchical,  // within hosts, then between hosts by recursive halving
};

/// The longest tensor that is summed directly: it takes as much memory once more.
constexpr std::size_t largest_direct_bytes = std::size_t{16} << 20;

/// The scheme for `bytes` on `ranks`. It depends on nothing else, so that a run that is continued
/// on as many ranks has the same bits.
AllReduceScheme all_reduce_scheme(std::size_t bytes, std::int64_t ranks) noexcept;

/// ceil(log2(n)), n >= 1
int halving_levels(std::int64_t n) noexcept;

/// What the busiest of `hosts` sends and receives in a reduce-scatter by recursive halving, in
/// parts of 1 / hosts of the values: hosts - 1 where their number is a power of two.
std::int64_t halving_parts(std::int64_t hosts) noexcept;

/// Steps of `scheme`, each of which waits for the one before. `largest_host`: ranks on it.
std::int64_t all_reduce_steps(AllReduceScheme scheme,
                              std::int64_t ranks,
                              std::int64_t hosts,
                              std::int64_t largest_host) noexcept;

}  // namespace hetseq
