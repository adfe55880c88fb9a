#include "hetseq/session/discover_devices.hpp"

#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/session/list_warning.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/rank_device.hpp"
#include "hetseq/session/rank_list.hpp"

namespace hetseq {

Topology discover_devices(const HostComm& world, const Options& options, const RankInfo* before) {
    if (before != nullptr)
        return discover_topology(world, DeviceChoice::automatic, before);
    const DeviceChoice choice =
        agree_on(world, [&] { return rank_device(options.device, world.rank(), host_name()); });
    warn_of_competing_entries(
        world, "device", competing_entries(options.device, world.rank(), host_name()));
    return discover_topology(world, choice);
}

}  // namespace hetseq
