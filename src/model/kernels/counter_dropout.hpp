#pragma once

#include <ATen/core/Tensor.h>

#include "dropout_mask.hpp"

namespace hetseq::detail {

/// `out` = `x` * mask * scale. `x` and `out` contiguous with equal shapes; they may be the same.
void counter_dropout_cpu(const at::Tensor& x,
                         const at::Tensor& out,
                         const DropoutMask& mask,
                         const DropoutLayout& layout,
                         const at::Tensor& sample_ids);

/// The same bits on a GPU. Throws DeviceError in a build without CUDA.
void counter_dropout_cuda(const at::Tensor& x,
                          const at::Tensor& out,
                          const DropoutMask& mask,
                          const DropoutLayout& layout,
                          const at::Tensor& sample_ids);

}  // namespace hetseq::detail
