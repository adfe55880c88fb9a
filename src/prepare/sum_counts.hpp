#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

/// Collective. Sets each of `counts` to its sum over the ranks.
template <std::size_t n>
void sum_counts(const HostComm& world, const std::array<std::int64_t*, n>& counts) {
    std::array<std::int64_t, n> values{};
    for (std::size_t i = 0; i < n; ++i)
        values[i] = *counts[i];
    world.all_reduce(std::span<std::int64_t>(values), ReduceOp::sum);
    for (std::size_t i = 0; i < n; ++i)
        *counts[i] = values[i];
}

}  // namespace hetseq
