#pragma once

#include <cstddef>
#include <vector>

#include <mpi.h>

#include "progress.hpp"

namespace hetseq {

/// Memory that all-reduces of one communicator reuse; MPI writes to it while one runs.
using Scratch = std::vector<std::byte>;

/// Collective. Sums `count` elements at `values` over the ranks of `comm`, in place: a
/// reduce-scatter and an all-gather around the ring of ranks, in messages of `message_bytes`,
/// several in flight. Every element is summed once, in an order that only its place and the number
/// of ranks determine, and then copied, so all ranks end with the same bits. Any count, any number
/// of ranks. After an exception MPI may still write to `values` and `scratch`.
template <class Value>
void ring_all_reduce(MPI_Comm comm,
                     Value* values,
                     std::size_t count,
                     std::size_t message_bytes,
                     Scratch& scratch,
                     Progress& progress);

/// Collective. Sums `count` elements at `values` over the ranks of `comm`, in place, by recursive
/// doubling: log2(n) exchanges of all values, for tensors so small that latency is their cost.
/// (Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in
/// MPICH", section 4.5.) Both partners of an exchange add the lower ranks' sum first, so all ranks
/// end with the same bits.
/// After an exception MPI may still write to `values` and `scratch`.
template <class Value>
void doubling_all_reduce(
    MPI_Comm comm, Value* values, std::size_t count, Scratch& scratch, Progress& progress);

/// Collective. Sums `count` elements at `values` over the ranks of `comm`, in place: each rank gets
/// the others' parts of its share of the values, sums them, and sends the sums to all, in
/// messages of `message_bytes`, each summed when it has come from all. (Thakur, Rabenseifner and
/// Gropp 2005, "Optimization of Collective Communication Operations in MPICH", sections 4.2
/// and 4.1: pairwise exchange, for both halves.) Two steps whatever the number of ranks, each of
/// which talks to all others: for few ranks, and tensors of a few MB. Every element is ((x_0 + x_1)
/// + x_2) + ... in the order of ranks, summed once (values of 16 bits in fp32, and rounded once)
/// and then copied: all ranks end with the same bits, which do not depend on how the values are
/// cut. After an exception MPI may still write to `values` and `scratch`.
template <class Value>
void direct_all_reduce(MPI_Comm comm,
                       Value* values,
                       std::size_t count,
                       std::size_t message_bytes,
                       Scratch& scratch,
                       Progress& progress);

}  // namespace hetseq
