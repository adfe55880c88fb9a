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

/// The same for samples whose elements lie as `places` says: keyed by coordinates.
void matrix_dropout_cpu(const at::Tensor& x,
                        const at::Tensor& out,
                        const DropoutMask& mask,
                        const DropoutMatrices& places,
                        const at::Tensor& sample_ids);
void matrix_dropout_cuda(const at::Tensor& x,
                         const at::Tensor& out,
                         const DropoutMask& mask,
                         const DropoutMatrices& places,
                         const at::Tensor& sample_ids);

/// The same for rows of tokens: row i of `x` (R, C) has the elements [C * positions[i],
/// C * (positions[i] + 1)) of the sample `sample_ids[i]`.
void token_dropout_cpu(const at::Tensor& x,
                       const at::Tensor& out,
                       const DropoutMask& mask,
                       const at::Tensor& sample_ids,
                       const at::Tensor& positions);
void token_dropout_cuda(const at::Tensor& x,
                        const at::Tensor& out,
                        const DropoutMask& mask,
                        const at::Tensor& sample_ids,
                        const at::Tensor& positions);

}  // namespace hetseq::detail
