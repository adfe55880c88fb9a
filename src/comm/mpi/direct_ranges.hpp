#pragma once

#include <cstddef>
#include <span>

#include <mpi.h>

#include "hetseq/util/owned_range.hpp"

#include "all_reduce.hpp"
#include "progress.hpp"

namespace hetseq {

/// The most that a reduce-scatter takes in at once, and so of its scratch, whatever the number of
/// ranks: unlike an all-reduce's, one rank's part may be all of the tensor.
constexpr std::size_t scatter_window_bytes = std::size_t{32} << 20;

/// Collective. Sums the values over the ranks of `comm`, each element at its owner alone: every
/// rank sends it its values, in messages of about `message_bytes`. Each sum is that of
/// `direct_all_reduce`: ((x_0 + x_1) + x_2) + ... in the order of ranks. `ranges` are in order and
/// do not overlap; other values are as they were. After an exception MPI may still write to
/// `values` and `scratch`.
template <class Value>
void direct_reduce_scatter(MPI_Comm comm,
                           Value* values,
                           std::span<const OwnedRange> ranges,
                           std::size_t message_bytes,
                           Scratch& scratch,
                           Progress& progress);

/// Collective. Each owner sends its values to all others. As above, for values of any type of
/// `value_bytes`.
void direct_all_gather(MPI_Comm comm,
                       std::byte* values,
                       std::size_t value_bytes,
                       std::span<const OwnedRange> ranges,
                       std::size_t message_bytes,
                       Progress& progress);

}  // namespace hetseq
