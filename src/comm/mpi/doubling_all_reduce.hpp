#pragma once

#include <cstddef>

#include <mpi.h>

#include "progress.hpp"
#include "ring_all_reduce.hpp"

namespace hetseq {

/// Collective. Sums `count` elements at `values` over the ranks of `comm`, in place, by recursive
/// doubling: log2(n) exchanges of all values. This is for tensors so small that latency dominates.
/// (Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in
/// MPICH", section 4.5.) Both partners of an exchange add the lower ranks' sum first, so all ranks
/// end with the same bits. After an exception MPI may still write to `values` and `scratch`.
template <class Value>
void doubling_all_reduce(
    MPI_Comm comm, Value* values, std::size_t count, Scratch& scratch, Progress& progress);

}  // namespace hetseq
