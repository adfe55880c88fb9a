#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "hetseq/model/dropout.hpp"

namespace hetseq::detail {

/// The source of a dropout's mask. `p` = 0 means no dropout.
struct Dropout {
    double p = 0;
    DropoutKey key;
    at::Tensor sample_ids;  // (n) int64
};

/// Weight (out, in) and bias (out) of a linear layer, or weight and bias (H) of a layer
/// normalisation.
struct Affine {
    at::Tensor weight, bias;
};

/// Multi-head scaled dot-product attention within each sequence.
/// `qkv` (n, T, 3H): queries, keys and values side by side, each split into `heads`.
/// `key_mask` (n, T) bool, false where a key is padding; undefined: no padding.
/// Dropout applies to the probabilities. Returns (n, T, H).
at::Tensor self_attention(const at::Tensor& qkv,
                          const at::Tensor& key_mask,
                          std::int64_t heads,
                          const Dropout& dropout);

/// norm(residual + dropout(x)), x and residual (n, T, H).
at::Tensor dropout_add_norm(const at::Tensor& x,
                            const at::Tensor& residual,
                            const Affine& norm,
                            double eps,
                            const Dropout& dropout);

/// gelu(x weight^T + bias), erf form.
at::Tensor linear_gelu(const at::Tensor& x, const Affine& linear);

/// Negative log-likelihoods of `labels` (M) under softmax(x weight^T + bias), x (M, H), summed; and
/// how many labels are the likeliest class, where `count_correct`.
struct CrossEntropy {
    at::Tensor loss, correct;  // scalars; `correct` undefined unless asked for
};
enum class CountCorrect { no, yes };
CrossEntropy linear_cross_entropy(const at::Tensor& x,
                                  const Affine& linear,
                                  const at::Tensor& labels,
                                  CountCorrect count_correct);

}  // namespace hetseq::detail
