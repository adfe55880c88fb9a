#pragma once

#include <array>
#include <string>

namespace hetseq {

using DeviceUuid = std::array<unsigned char, 16>;

/// True for the name of a slice of a GPU (MIG): "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
bool is_slice(const std::string& name);

/// A device's UUID as nvidia-smi prints it: "GPU-01234567-...", or "MIG-..." of a slice. Where
/// `visible`, the value of CUDA_VISIBLE_DEVICES, is the name of one slice alone, that is returned:
/// it tells slices apart even where CUDA reports the UUID of their GPU.
std::string device_uuid(const std::string& name,
                        const DeviceUuid& uuid,
                        const std::string& visible);

/// "0000:59:00.0".
std::string pci_address(int domain, int bus, int device);

}  // namespace hetseq
