#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"

#include "comm/host/rank_ranges.hpp"
#include "communicators.hpp"

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

namespace hetseq {

namespace {

// Collective. NCCL and MPI cannot sum with one another.
void check_one_kind_of_device(const HostComm& world, at::Device device) {
    std::vector<int> on_cpu;
    std::vector<int> on_gpu;
    int rank = 0;
    for (const std::int64_t cpu : world.all_gather(std::int64_t{device.is_cpu()}))
        (cpu != 0 ? on_cpu : on_gpu).push_back(rank++);
    if (!on_cpu.empty() && !on_gpu.empty())
        throw DeviceError("the ranks use unlike devices: the CPU on " + name_ranks(on_cpu) +
                              ", a GPU on " + name_ranks(on_gpu),
                          "gradients are summed either among GPUs or among CPUs",
                          "give --device cpu, or leave out the hosts without a GPU");
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const HostComm& world,
                                                const MpiEnvironment& environment,
                                                at::Device device,
                                                const CommunicatorOptions& options) {
    check_one_kind_of_device(world, device);
    if (world.size() == 1)
        return make_serial_communicator(device);
    if (device.is_cpu())
        return make_mpi_communicator(world, environment.thread_support(), options);
    return make_nccl_communicator(world, device, options);
}

}  // namespace hetseq
