#pragma once

#include <memory>
#include <vector>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

#include "comm/mixed/device_groups.hpp"

namespace hetseq {

/// The communicator of a single rank: every collective is complete at once.
std::unique_ptr<Communicator> make_serial_communicator(at::Device device);

/// Collective. Tensors in host memory, summed over MPI by a communication thread. With less than
/// MPI_THREAD_MULTIPLE there is no such thread: `start_all_reduce_sum` then runs the collective to
/// its end before it returns. `job_ranks`: what messages call the ranks of `world`; empty: as it
/// does.
std::unique_ptr<Communicator> make_mpi_communicator(const HostComm& world,
                                                    ThreadSupport threads,
                                                    const CommunicatorOptions& options,
                                                    const std::vector<int>& job_ranks = {});

/// The GPU of `device` and the NCCL that this rank loads. Throws DeviceError where there is none,
/// and in a build without CUDA.
RankDevice nccl_device(at::Device device);

/// Collective. Tensors on `device`, summed by NCCL on a stream of their own. Each rank has a GPU of
/// its own, and all load one version of NCCL: unlike ones do not fail, they hang or give wrong
/// sums. Throws DeviceError in a build without CUDA.
std::unique_ptr<Communicator> make_nccl_communicator(const HostComm& world,
                                                     at::Device device,
                                                     const CommunicatorOptions& options);

}  // namespace hetseq
