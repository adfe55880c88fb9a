#pragma once

#include <array>
#include <string>

namespace hetseq {

using DeviceUuid = std::array<unsigned char, 16>;

/// A device's UUID as nvidia-smi prints it: "GPU-01234567-...". A slice of a GPU (MIG), whose
/// `name` tells it ("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), has a "MIG-...". Where
/// CUDA_VISIBLE_DEVICES
/// (`visible`) is the name of one slice alone, that is returned: with drivers before R470 a slice
/// has no UUID of its own.
std::string device_uuid(const std::string& name,
                        const DeviceUuid& uuid,
                        const std::string& visible);

/// "0000:59:00.0".
std::string pci_address(int domain, int bus, int device);

}  // namespace hetseq
