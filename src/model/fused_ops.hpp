#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "transformer_ops.hpp"

namespace hetseq::detail {

/// Products (..., outputs), and the bias that attention adds to them; undefined where it is added.
struct Projected {
    at::Tensor rows, bias;
};

/// Multi-head scaled dot-product attention on a GPU. Between the two products one kernel makes
/// probabilities of scores, and one at each end takes rows to heads and back. Scores are fp32
/// inside of the kernel. `queries` (R, H) and `keys_values` (N, 2H), keys and values side by side;
/// or `queries` (N, 3H) holds all three and `keys_values` is undefined. Returns (R, H).
at::Tensor fused_attention(const Projected& queries,
                           const Projected& keys_values,
                           const RowPlaces& query_rows,
                           const RowPlaces& key_rows,
                           std::int64_t heads,
                           const AttentionMask& mask,
                           const Dropout& dropout,
                           const DropoutExtent& extent);

/// norm(residual + dropout(x + x_bias)) on a GPU, in one kernel; x and residual (..., H). The
/// residual and x's bias may be undefined. In 16 bits the sum and the result are fp32, and the
/// result is there in x's type too. Elsewhere both results share their memory, and the gradients of
/// both are added in the kernel of backward.
Rows fused_dropout_add_norm(const at::Tensor& x,
                            const at::Tensor& x_bias,
                            const at::Tensor& residual,
                            const Affine& norm,
                            double eps,
                            const Dropout& dropout);

/// dropout(norm(x)) on a GPU, in one kernel, of x (N, H) in fp32 at least; as
/// `fused_dropout_add_norm` in two tensors, the second of which is of `type`.
Rows fused_norm_dropout(const at::Tensor& x,
                        const Affine& norm,
                        double eps,
                        const Dropout& dropout,
                        at::ScalarType type);

/// dropout(words + positions + segments) on a GPU, in one kernel; as `fused_dropout_add_norm` in
/// two tensors, the second of which is of `type`.
Rows fused_embedding(const Embedding& embedding, const Dropout& dropout, at::ScalarType type);

/// activation(x weight^T + bias) on a GPU, in a product and one kernel. `x` (..., inputs) of the
/// type of products. The gradients of weight and bias are sums in fp32 at least.
at::Tensor fused_linear_activation(const at::Tensor& x,
                                   const Affine& affine,
                                   Activation activation);

/// x weight^T + bias in 16 bits, where `Autocast` is. `x` (..., inputs) of 16 bits; the bias may be
/// undefined. The gradients of weight and bias are sums in fp32 that are never rounded to 16 bits.
at::Tensor narrow_linear(const at::Tensor& x, const Affine& affine);

}  // namespace hetseq::detail
