#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hetseq::detail {

/// How many sums `sums_of_squares_cuda` of `numel` elements makes.
std::int64_t gradient_norm_sums(std::int64_t numel);

/// Writes sums whose sum is that of the squares of `gradients` (n), contiguous, to `sums`: as many
/// in fp64 as above, on their GPU. Without a copy of them, and the same in every call. Throws
/// DeviceError in a build without CUDA, as the other function does.
void sums_of_squares_cuda(const at::Tensor& gradients, at::Tensor& sums);

}  // namespace hetseq::detail
