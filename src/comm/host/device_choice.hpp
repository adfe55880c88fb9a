#pragma once

#include <optional>

#include "cuda_devices.hpp"

#include "hetseq/comm/host/topology.hpp"

namespace hetseq {

/// The index of the GPU that the rank with `local_rank` of `local_size` ranks uses; empty for the
/// CPU. Throws DeviceError if a GPU is requested but missing, if `visible` holds several GPUs but
/// fewer than there are local ranks, or if the rank's GPU cannot run this program.
std::optional<int> choose_device(const VisibleCudaDevices& visible,
                                 DeviceChoice choice,
                                 int local_rank,
                                 int local_size);

}  // namespace hetseq
