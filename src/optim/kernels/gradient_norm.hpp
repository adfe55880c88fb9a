#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hetseq::detail {

/// How many sums `gradient_norm_cuda` of `numel` elements makes first.
std::int64_t gradient_norm_sums(std::int64_t numel);

/// Writes sqrt of the summed squares of `gradients` (n) to `norm`, an fp64 scalar on their GPU:
/// without a copy of them, and the same in every call. `sums`: as many in fp64 as above, scratch.
/// Throws DeviceError in a build without CUDA, as the other function does.
void gradient_norm_cuda(const at::Tensor& gradients, at::Tensor& sums, at::Tensor& norm);

}  // namespace hetseq::detail
