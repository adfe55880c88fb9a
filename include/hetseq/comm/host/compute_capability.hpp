#pragma once

#include <c10/core/Device.h>

namespace hetseq {

/// Of a GPU of this host: 10 times its major number and its minor one, 70 for a V100. Throws
/// DeviceError where CUDA fails, and InternalError for another device.
int compute_capability(at::Device device);

}  // namespace hetseq
