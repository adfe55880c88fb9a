#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

#include "comm/mixed/device_groups.hpp"
#include "comm/mpi/mpi_collectives.hpp"

namespace hetseq {

/// A rank's place among groups of unlike devices.
struct MixedPlace {
    DeviceGroups groups;
    int rank = 0;  // in the job
    int size = 0;
};

/// The values of `tensor`, which is contiguous, in views of at most `bytes` each (of one value at
/// least).
std::vector<at::Tensor> pieces_of(const at::Tensor& tensor, std::int64_t bytes);

/// `ranges`, which cover a tensor in order and are owned by ranks of the job, as ranges owned by
/// those who meet for them: a group's belong to its speaker. Neighbours of one owner are joined.
std::vector<OwnedRange> meeting_ranges(const DeviceGroups& groups,
                                       const std::vector<OwnedRange>& ranges);

/// Collective. Sums and broadcasts over ranks with unlike devices. An all-reduce is reduced by NCCL
/// to the first rank of each group of GPUs, summed by MPI over these and the ranks on CPUs in host
/// memory, and broadcast by NCCL: the same bits on all ranks. A reduce-scatter and an all-gather go
/// the same way, where each group has one rank's part of what MPI does: all ranges of its ranks.
/// Throws on all ranks where MPI takes calls of one thread alone, since a GPU's gradients come from
/// others.
std::unique_ptr<Communicator> make_mixed_communicator(const HostComm& world,
                                                      const DeviceGroups& groups,
                                                      at::Device device,
                                                      ThreadSupport threads,
                                                      const CommunicatorOptions& options);

/// Collective over `group`, the ranks of this rank's GPU group. `meeting` is null but on the first
/// of them. The result is null where another rank of the group has failed, which throws. Throws
/// DeviceError in a build without CUDA.
std::unique_ptr<Communicator> join_mixed_gpus(const MixedPlace& place,
                                              const HostComm& group,
                                              at::Device device,
                                              std::shared_ptr<MpiCollectives> meeting,
                                              ThreadSupport threads,
                                              const CommunicatorOptions& options);

}  // namespace hetseq
