#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <mpi.h>

#include "comm/mpi/host_map.hpp"
#include "comm/mpi/progress.hpp"
#include "lane_layout.hpp"

namespace hetseq {

/// Values of any type that can be added.
struct Values {
    std::byte* begin = nullptr;
    std::size_t count = 0;
    std::size_t bytes = 0;  // of one
    /// target[i] = (parts[0][i] + parts[1][i]) + ..., for `count` of them; `target` may be a part
    void (*sum)(std::byte* target,
                std::span<const std::byte* const> parts,
                std::size_t count) = nullptr;
};

constexpr std::size_t pieces_in_flight = 2;

/// What a hierarchical collective runs with.
struct HierarchicalRun {
    MPI_Comm comm = MPI_COMM_NULL;
    const HostMap& hosts;
    std::size_t message_bytes = 0;  // the longest message
    std::size_t piece_bytes = 0;    // of the values, worked on at once: scratch is a few times this
    /// That later collectives use again. After an exception MPI may still write to it.
    std::array<std::vector<std::byte>, pieces_in_flight>& scratch;
    Progress& progress;
};

/// Sums of values over all ranks, within hosts first and then between hosts. All three are
/// collective, and all ranks give the same `ranges`: one a rank, which do not overlap and may be of
/// any length, zero included. After an exception MPI may still write to the values.
///
/// The order of summing. A host's sum is ((x_0 + x_1) + x_2) + ... in the order of its ranks.
/// Hosts' sums are added by recursive halving (`halving_levels_of`): own + gets[0] + gets[1] at
/// each level, by the host to which the element belongs in the end. It depends on the ranks, on the
/// hosts, and, where the number of hosts is no power of two, on the host that owns the element;
/// not on the lengths of messages and pieces. Each element is summed once and then copied. Values
/// of 16 bits are rounded once for a host and once a level.

/// Afterwards `ranges` of this rank holds sums; other values are as they were.
void hierarchical_reduce_scatter(const HierarchicalRun& run,
                                 const Values& values,
                                 const std::vector<ElementRange>& ranges);
/// Copies the values in each rank's range to all ranks.
void hierarchical_all_gather(const HierarchicalRun& run,
                             const Values& values,
                             const std::vector<ElementRange>& ranges);
/// Both, of all values. The hosts own equal parts of them, whatever their ranks: each has one link.
void hierarchical_all_reduce(const HierarchicalRun& run, const Values& values);

}  // namespace hetseq
