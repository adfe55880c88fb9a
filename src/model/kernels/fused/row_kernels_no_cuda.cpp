#include "hetseq/util/no_cuda.hpp"

#include "fused_kernels.hpp"

namespace hetseq::detail {

namespace {

constexpr const char* no_row_kernels = "a Transformer's kernels cannot run on a CUDA tensor";

}  // namespace

ResidualNormed residual_norm_cuda(
    const at::Tensor&, const at::Tensor&, const NormTensors&, at::ScalarType, const TokenPlaces&) {
    throw_no_cuda(no_row_kernels);
}

ResidualNormGradients residual_norm_backward_cuda(const ResidualNormed&,
                                                  const at::Tensor&,
                                                  const at::Tensor&,
                                                  const NormTensors&,
                                                  const NormInputs&,
                                                  at::ScalarType,
                                                  const TokenPlaces&) {
    throw_no_cuda(no_row_kernels);
}

at::Tensor bias_activation_cuda(const at::Tensor&, const at::Tensor&, Activation) {
    throw_no_cuda(no_row_kernels);
}

BiasActivationGradients bias_activation_backward_cuda(const at::Tensor&,
                                                      const at::Tensor&,
                                                      const at::Tensor&,
                                                      Activation) {
    throw_no_cuda(no_row_kernels);
}

EmbeddingSums embedding_sum_cuda(const EmbeddingTensors&, at::ScalarType, const TokenPlaces&) {
    throw_no_cuda(no_row_kernels);
}

at::Tensor outputs_backward_cuda(
    const at::Tensor&, const at::Tensor&, double, at::ScalarType, const TokenPlaces&) {
    throw_no_cuda(no_row_kernels);
}

}  // namespace hetseq::detail
