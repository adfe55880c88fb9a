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

/// The order in which the ranks' values of an element are added: that of `direct_all_reduce`, from
/// rank 0 on, or that of `ring_all_reduce`, which begins with the element's chunk.
enum class SumOrder { of_ranks, around_the_ring };

/// Collective. Sums `count` values over the ranks of `comm`, each element at its owner alone: every
/// rank sends it its values, in messages of about `message_bytes`. Each sum has the bits of the
/// all-reduce of this order. `ranges` are in order and do not overlap; other values are as they
/// were. After an exception MPI may still write to `values` and `scratch`.
template <class Value>
void direct_reduce_scatter(MPI_Comm comm,
                           Value* values,
                           std::size_t count,
                           SumOrder order,
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
