#pragma once

#include "hetseq/comm/host/topology.hpp"

namespace hetseq {

struct Options;

/// Collective. `discover_topology` with each rank's own --device. Throws BadConfig on all ranks.
/// `before`: as there; a rank that has one keeps its device, whatever --device says.
Topology discover_devices(const HostComm& world,
                          const Options& options,
                          const RankInfo* before = nullptr);

}  // namespace hetseq
