#pragma once

#include <memory>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq {

/// The communicator of a single rank: every collective is complete at once.
std::unique_ptr<Communicator> make_serial_communicator(at::Device device);

/// Collective. Tensors in host memory, summed over MPI by a communication thread. With less than
/// MPI_THREAD_MULTIPLE there is no such thread: `start_all_reduce_sum` then runs the collective to
/// its end before it returns.
std::unique_ptr<Communicator> make_mpi_communicator(const HostComm& world,
                                                    ThreadSupport threads,
                                                    const CommunicatorOptions& options);

/// Collective. Tensors on `device`, summed by NCCL on a stream of their own. Throws DeviceError in
/// a build without CUDA and where two ranks use one GPU, CommError where the ranks' NCCL versions
/// differ.
std::unique_ptr<Communicator> make_nccl_communicator(const HostComm& world,
                                                     at::Device device,
                                                     const CommunicatorOptions& options);

}  // namespace hetseq
