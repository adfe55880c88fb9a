#pragma once

#include <cstddef>

#include <mpi.h>

#include "progress.hpp"
#include "ring_all_reduce.hpp"

namespace hetseq {

/// Collective. Sums `count` elements at `values` over the ranks of `comm`, in place: each rank gets
/// the others' parts of its share of the values, sums them, and sends the sums to all, in
/// messages of `message_bytes`, each summed when it has come from all. (Thakur, Rabenseifner and
/// Gropp 2005, "Optimization of Collective Communication Operations in MPICH", sections 4.2
/// and 4.1: pairwise exchange, for both halves.) Two steps whatever the number of ranks, each of
/// which talks to all others: for few ranks, and tensors of a few MB. Every element is ((x_0 + x_1)
/// + x_2) + ... in the order of ranks, summed once and then copied: all ranks end with the same
/// bits, which do not depend on how the values are cut. After an exception MPI may still write to
/// `values` and `scratch`.
template <class Value>
void direct_all_reduce(MPI_Comm comm,
                       Value* values,
                       std::size_t count,
                       std::size_t message_bytes,
                       Scratch& scratch,
                       Progress& progress);

}  // namespace hetseq
