#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

struct CudaDevice {
    std::string name;  // "NVIDIA H200"
    std::string uuid;  // "GPU-01234567-...", or "MIG-..." of a slice of a GPU
    std::string gpu;   // which one it is, or is a slice of; no other machine's has the same
    std::int64_t memory_mb = 0;
    /// Why this hetseq cannot use it; empty if it can.
    std::string why_not;
};

/// The GPUs that this process sees (CUDA_VISIBLE_DEVICES), and, when there are none, why.
struct VisibleCudaDevices {
    std::vector<CudaDevice> devices;
    std::string why_none;
};

/// Does not throw if a GPU or a driver is missing.
VisibleCudaDevices visible_cuda_devices();

/// From now on, CUDA calls of this thread use this device.
void make_cuda_device_current(int index);

}  // namespace hetseq
