#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"

#include "fused_arrays.hpp"

namespace hetseq::detail {

/// A number as the kernels hold it.
inline std::uint32_t to_size(std::int64_t number) {
    HETSEQ_ASSERT(number >= 0 && number < (std::int64_t{1} << 32));
    return static_cast<std::uint32_t>(number);
}

/// Each runs one kernel on a GPU, but where it says more. Throws DeviceError in a build without
/// CUDA. Tensors are contiguous.

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

/// What a normalisation and its sum take for each column, (columns), fp32 at least; or their
/// gradients.
struct NormTensors {
    at::Tensor weight, bias;
    at::Tensor x_bias;  // undefined where x has no bias
};
struct ResidualNormed {
    at::Tensor wide;    // (rows, columns), fp32 at least
    at::Tensor narrow;  // the same in x's type where that has 16 bits; undefined otherwise
    at::Tensor sums, means, inverse_deviations;  // for backward
};
/// norm(residual + dropout(x + x_bias)). `x` (rows, columns) of `type`; the others have fp32 at
/// least. One of x and the residual may be undefined: x where the places say `drops_output`.
ResidualNormed residual_norm_cuda(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const NormTensors& parameters,
                                  at::ScalarType type,
                                  const TokenPlaces& places);
/// What a normalisation has, and what therefore has gradients.
struct NormInputs {
    bool has_x = true, has_residual = true;
};
struct ResidualNormGradients {
    at::Tensor x, residual;
    NormTensors parameters;
};
/// In two kernels. Dropout is that of x. `of_wide` and
/// `of_narrow`: gradients of the outputs, of which one may be undefined. Where x has no 16 bits,
/// both are of its type. `type`: x's.
ResidualNormGradients residual_norm_backward_cuda(const ResidualNormed& kept,
                                                  const at::Tensor& of_wide,
                                                  const at::Tensor& of_narrow,
                                                  const NormTensors& parameters,
                                                  const NormInputs& inputs,
                                                  at::ScalarType type,
                                                  const TokenPlaces& places);

/// activation(product + bias), in the memory of `product` where `is_kept_output`. `product` (rows,
/// columns), `bias` (columns) of fp32 at least.
at::Tensor bias_activation_cuda(const at::Tensor& product,
                                const at::Tensor& bias,
                                Activation activation);
struct BiasActivationGradients {
    at::Tensor product, bias;
};
/// `kept`: the output where `is_kept_output`, else the product.
BiasActivationGradients bias_activation_backward_cuda(const at::Tensor& kept,
                                                      const at::Tensor& bias,
                                                      const at::Tensor& gradient,
                                                      Activation activation);

/// Tables (..., columns) of fp32 at least, and which of their rows are added, (rows) int64.
struct EmbeddingTensors {
    at::Tensor words, ids;
    double scale = 1;  // of the words
    at::Tensor positions, position_ids;
    std::int64_t length = 1;           // a row's position is row % length without `position_ids`
    at::Tensor segments, segment_ids;  // may be undefined
};
struct EmbeddingSums {
    at::Tensor wide;    // (rows, columns)
    at::Tensor narrow;  // the same in 16 bits, where they were asked for
};
/// dropout(scale * words + positions + segments). `type`: 16 bits ask for `narrow`.
EmbeddingSums embedding_sum_cuda(const EmbeddingTensors& tables,
                                 at::ScalarType type,
                                 const TokenPlaces& places);
/// The gradient in front of dropout, times `scale`, of those of an output in two types, (rows,
/// columns). One of both may be undefined. `type`: of the narrow one.
at::Tensor outputs_backward_cuda(const at::Tensor& of_wide,
                                 const at::Tensor& of_narrow,
                                 double scale,
                                 at::ScalarType type,
                                 const TokenPlaces& places);

/// `rows` + `bias` to (n * heads, length, width) for each part. `rows` (rows, parts * heads *
/// width); `bias` (parts * heads * width) of fp32 at least, or undefined.
std::vector<at::Tensor> heads_of_rows_cuda(const at::Tensor& rows,
                                           const at::Tensor& bias,
                                           const HeadPlaces& at);
/// The other way round. Parts may be undefined, but for one.
at::Tensor rows_of_heads_cuda(const std::vector<at::Tensor>& heads, const HeadPlaces& at);
struct RowsAndSums {
    at::Tensor rows;
    at::Tensor sums;  // (parts * heads * width) of the rows, fp32 at least
};
RowsAndSums rows_of_heads_and_sums_cuda(const std::vector<at::Tensor>& heads, const HeadPlaces& at);

}  // namespace hetseq::detail
