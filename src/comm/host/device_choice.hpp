#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hetseq/comm/host/topology.hpp"

#include "cuda_devices.hpp"

namespace hetseq {

/// A rank asks for this, and sees these GPUs, by UUID.
struct DeviceWish {
    DeviceChoice choice = DeviceChoice::automatic;
    std::vector<std::string> gpus;
};

/// For each rank of a host the index of its GPU among those that it sees; empty for the CPU. A rank
/// takes the first GPU that is free: those that see only one before the others, and those that must
/// have one before those that may. Where none is free,
/// the automatic choice is the CPU, and `cuda` shares the GPU that the fewest use.
std::vector<std::optional<int>> share_out_gpus(const std::vector<DeviceWish>& wishes);

/// Checks what `share_out_gpus` gave a rank with that choice, which sees `visible`, and returns it.
/// Throws DeviceError if a GPU is requested but missing, or cannot run this program.
std::optional<int> checked_gpu(std::optional<int> given,
                               DeviceChoice choice,
                               const VisibleCudaDevices& visible);

}  // namespace hetseq
