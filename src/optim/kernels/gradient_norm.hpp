#pragma once

#include <ATen/core/Tensor.h>

namespace hetseq::detail {

/// sqrt of the summed squares of `gradients` (n), as an fp64 scalar on their GPU: without a copy of
/// them, and the same in every call. Throws DeviceError in a build without CUDA.
at::Tensor gradient_norm_cuda(const at::Tensor& gradients);

}  // namespace hetseq::detail
