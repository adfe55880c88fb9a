#pragma once

#include <memory>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq {

/// Collective. Tensors in host memory, summed over MPI by a communication thread. With less than
/// MPI_THREAD_MULTIPLE there is no such thread: `start_all_reduce_sum` then runs the collective to
/// its end before it returns.
std::unique_ptr<Communicator> make_mpi_communicator(const HostComm& world,
                                                    ThreadSupport threads,
                                                    const CommunicatorOptions& options);

}  // namespace hetseq
