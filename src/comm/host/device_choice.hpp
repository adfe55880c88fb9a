#pragma once

#include <optional>

#include "cuda_devices.hpp"

#include "hetseq/comm/host/topology.hpp"

namespace hetseq {

/// The index of the GPU that the rank with `local_rank` of `local_size` ranks uses; empty for the
/// CPU. Throws DeviceError when a GPU is asked for and missing, or when `visible` holds several
/// but fewer than local ranks.
std::optional<int> choose_device(const VisibleCudaDevices& visible,
                                 DeviceChoice choice,
                                 int local_rank,
                                 int local_size);

}  // namespace hetseq
