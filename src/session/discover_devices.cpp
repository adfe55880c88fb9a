#include "hetseq/session/discover_devices.hpp"

#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/ranks/own_choice.hpp"

namespace hetseq {

Topology discover_devices(const HostComm& world, const Options& options, const RankInfo* before) {
    if (before != nullptr)
        return discover_topology(world, DeviceChoice::automatic, before);
    const DeviceChoice choice = own_choice(world,
                                           option_name(any_options().device),
                                           options.device,
                                           RankPlace(world.rank(), host_name()));
    return discover_topology(world, choice);
}

}  // namespace hetseq
