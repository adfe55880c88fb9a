#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "fused_arrays.hpp"

namespace hetseq::detail {

/// Each runs one kernel on a GPU. Throws DeviceError in a build without CUDA. Tensors are
/// contiguous.

struct Probabilities {
    at::Tensor dropped;   // as the scores
    at::Tensor log_sums;  // (rows), fp32 at least
};
/// `scores` (n, heads, queries, columns). The places' pointers are the tensors of the caller.
Probabilities attention_probabilities_cuda(const at::Tensor& scores, const ScorePlaces& places);
/// The gradient of the scores. `gradient`: of the probabilities after dropout.
at::Tensor attention_probabilities_backward_cuda(const at::Tensor& scores,
                                                 const at::Tensor& log_sums,
                                                 const at::Tensor& gradient,
                                                 const ScorePlaces& places);

struct ResidualNormed {
    at::Tensor wide;    // (rows, columns), fp32 at least
    at::Tensor narrow;  // the same in x's type where that has 16 bits; undefined otherwise
    at::Tensor sums, means, inverse_deviations;  // for backward
};
/// norm(residual + dropout(x)). `x` (rows, columns); the others have fp32 at least.
ResidualNormed residual_norm_cuda(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const at::Tensor& weight,
                                  const at::Tensor& bias,
                                  const NormPlaces& places);
struct ResidualNormGradients {
    at::Tensor x, residual, weight, bias;
};
/// `of_wide` and `of_narrow`: gradients of the outputs, of which one may be undefined. `type`: x's.
ResidualNormGradients residual_norm_backward_cuda(const ResidualNormed& kept,
                                                  const at::Tensor& of_wide,
                                                  const at::Tensor& of_narrow,
                                                  const at::Tensor& weight,
                                                  at::ScalarType type,
                                                  const NormPlaces& places);

/// `rows` (rows, parts * heads * width) to (n * heads, length, width) for each part.
std::vector<at::Tensor> heads_of_rows_cuda(const at::Tensor& rows, const HeadPlaces& at);
/// The other way round. Parts may be undefined, but for one.
at::Tensor rows_of_heads_cuda(const std::vector<at::Tensor>& heads, const HeadPlaces& at);

}  // namespace hetseq::detail
