#include <ATen/core/Tensor.h>

#include "hetseq/util/log.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"

#include "comm/mixed/device_groups.hpp"
#include "comm/mixed/mixed_communicator.hpp"
#include "communicators.hpp"

namespace hetseq {

namespace {

// Collective. By rank.
std::vector<RankDevice> gather_devices(const HostComm& world, at::Device device) {
    const RankDevice mine =
        agree_on(world, [&] { return device.is_cpu() ? RankDevice{} : nccl_device(device); });
    const std::vector<std::string> gpus = world.all_gather(mine.gpu);
    const std::vector<std::string> versions = world.all_gather(mine.nccl_version);
    std::vector<RankDevice> devices;
    for (std::size_t r = 0; r < gpus.size(); ++r)
        devices.push_back({gpus[r], versions[r]});
    return devices;
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const HostComm& world,
                                                const MpiEnvironment& environment,
                                                at::Device device,
                                                const CommunicatorOptions& options) {
    if (world.size() == 1)
        return make_serial_communicator(device);
    const std::vector<RankDevice> devices = gather_devices(world, device);
    const DeviceGroups groups = group_devices(devices);
    if (!groups.uniform()) {
        for (const std::string& reason : reasons_of(groups, devices))
            log::warn("gradients go through host memory too: " + reason);
        return make_mixed_communicator(
            world, groups, device, environment.thread_support(), options);
    }
    if (device.is_cpu())
        return make_mpi_communicator(world, environment.thread_support(), options);
    return make_nccl_communicator(world, device, options);
}

}  // namespace hetseq
