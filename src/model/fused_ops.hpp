#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "transformer_ops.hpp"

namespace hetseq::detail {

/// Multi-head scaled dot-product attention on a GPU. Between the two products one kernel makes
/// probabilities of scores, and one at each end takes rows to heads and back. Scores are fp32
/// inside of the kernel. `queries` (R, H) and `keys_values` (N, 2H), keys and values side by side;
/// or `queries` (N, 3H) holds all three and `keys_values` is undefined. Returns (R, H).
at::Tensor fused_attention(const at::Tensor& queries,
                           const at::Tensor& keys_values,
                           const RowPlaces& query_rows,
                           const RowPlaces& key_rows,
                           std::int64_t heads,
                           const AttentionMask& mask,
                           const Dropout& dropout,
                           const DropoutExtent& extent);

/// `dropout_add_norm` on a GPU, in one kernel. In 16 bits the sum and the result are fp32, and the
/// result is there in x's type too.
Rows fused_dropout_add_norm(const at::Tensor& x,
                            const at::Tensor& residual,
                            const Affine& norm,
                            double eps,
                            const Dropout& dropout);

/// x weight^T + bias in 16 bits, where `Autocast` is. `x` (..., inputs) of 16 bits. The gradients
/// of weight and bias are sums in fp32 that are never rounded to 16 bits.
at::Tensor narrow_linear(const at::Tensor& x, const Affine& affine);

}  // namespace hetseq::detail
