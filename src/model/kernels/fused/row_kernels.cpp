// The kernels of rows of tokens.
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/ScalarType.h>

#include "hetseq/util/error.hpp"

#include "fused_dispatch.hpp"
#include "fused_kernels.hpp"

namespace hetseq::detail {

namespace {

template <class T>
NormGradients<T> norm_gradients(const ResidualNormed& kept,
                                const at::Tensor& of_wide,
                                const at::Tensor& of_narrow) {
    using Value = ComputedType<T>;
    return {data_or_null<Value>(kept.sums),
            data_or_null<Value>(kept.means),
            data_or_null<Value>(kept.inverse_deviations),
            data_or_null<Value>(of_wide),
            data_or_null<T>(of_narrow)};
}

template <class Value>
EmbeddingTables<Value> embedding_tables(const EmbeddingTensors& tables) {
    return {data_or_null<Value>(tables.words),
            data_or_null<std::int64_t>(tables.ids),
            tables.scale,
            data_or_null<Value>(tables.positions),
            data_or_null<std::int64_t>(tables.position_ids),
            static_cast<std::uint32_t>(tables.length),
            data_or_null<Value>(tables.segments),
            data_or_null<std::int64_t>(tables.segment_ids)};
}

}  // namespace

ResidualNormed residual_norm_cuda(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const NormTensors& parameters,
                                  at::ScalarType type,
                                  const TokenPlaces& places) {
    const at::Tensor& one = residual.defined() ? residual : x;
    HETSEQ_ASSERT(!x.defined() || (x.scalar_type() == type && x.sizes() == one.sizes()));
    HETSEQ_ASSERT(!x.defined() || !places.drops_output);
    const c10::cuda::CUDAGuard guard{one.device()};
    const at::TensorOptions computed = one.options().dtype(computed_type(type));
    ResidualNormed result{at::empty(one.sizes(), computed),
                          c10::isReducedFloatingType(type)
                              ? at::empty(one.sizes(), computed.dtype(type))
                              : at::Tensor{},
                          at::empty(one.sizes(), computed),
                          at::empty({std::int64_t{places.rows}}, computed),
                          at::empty({std::int64_t{places.rows}}, computed)};
    if (one.numel() == 0)
        return result;
    HETSEQ_DISPATCH(type, "residual_norm", [&] {
        using Value = ComputedType<scalar_t>;
        launch_residual_norm<scalar_t>(data_or_null<scalar_t>(x),
                                       data_or_null<Value>(residual),
                                       {data_or_null<Value>(parameters.weight),
                                        data_or_null<Value>(parameters.bias),
                                        data_or_null<Value>(parameters.x_bias)},
                                       {result.sums.mutable_data_ptr<Value>(),
                                        result.means.mutable_data_ptr<Value>(),
                                        result.inverse_deviations.mutable_data_ptr<Value>(),
                                        result.wide.mutable_data_ptr<Value>(),
                                        mutable_data_or_null<scalar_t>(result.narrow)},
                                       places,
                                       current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return result;
}

ResidualNormGradients residual_norm_backward_cuda(const ResidualNormed& kept,
                                                  const at::Tensor& of_wide,
                                                  const at::Tensor& of_narrow,
                                                  const NormTensors& parameters,
                                                  const NormInputs& inputs,
                                                  at::ScalarType type,
                                                  const TokenPlaces& places) {
    const c10::cuda::CUDAGuard guard{kept.sums.device()};
    const auto like = [](const at::Tensor& tensor) {
        return tensor.defined() ? at::empty_like(tensor) : tensor;
    };
    ResidualNormGradients gradients{
        inputs.has_x ? at::empty(kept.sums.sizes(), kept.sums.options().dtype(type)) : at::Tensor{},
        inputs.has_residual ? at::empty_like(kept.sums) : at::Tensor{},
        {like(parameters.weight), like(parameters.bias), like(parameters.x_bias)}};
    HETSEQ_DISPATCH(type, "residual_norm_backward", [&] {
        using Value = ComputedType<scalar_t>;
        const auto given = norm_gradients<scalar_t>(kept, of_wide, of_narrow);
        if (places.rows > 0) {
            launch_residual_norm_backward<scalar_t>(given,
                                                    data_or_null<Value>(parameters.weight),
                                                    mutable_data_or_null<Value>(gradients.residual),
                                                    mutable_data_or_null<scalar_t>(gradients.x),
                                                    places,
                                                    current_stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        }
        launch_norm_parameters_backward<scalar_t>(
            given,
            data_or_null<scalar_t>(gradients.x),
            {gradients.parameters.weight.mutable_data_ptr<Value>(),
             gradients.parameters.bias.mutable_data_ptr<Value>(),
             mutable_data_or_null<Value>(gradients.parameters.x_bias)},
            places.rows,
            places.columns,
            current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return gradients;
}

at::Tensor bias_activation_cuda(const at::Tensor& product,
                                const at::Tensor& bias,
                                Activation activation) {
    HETSEQ_ASSERT(product.is_contiguous() && bias.size(0) == product.size(1));
    const c10::cuda::CUDAGuard guard{product.device()};
    const at::Tensor out = is_kept_output(activation) ? product : at::empty_like(product);
    if (product.numel() == 0)
        return out;
    HETSEQ_DISPATCH(product.scalar_type(), "bias_activation", [&] {
        launch_bias_activation<scalar_t>(product.const_data_ptr<scalar_t>(),
                                         data_or_null<ComputedType<scalar_t>>(bias),
                                         out.mutable_data_ptr<scalar_t>(),
                                         to_size(product.size(0)),
                                         to_size(product.size(1)),
                                         activation,
                                         current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return out;
}

BiasActivationGradients bias_activation_backward_cuda(const at::Tensor& kept,
                                                      const at::Tensor& bias,
                                                      const at::Tensor& gradient,
                                                      Activation activation) {
    HETSEQ_ASSERT(kept.sizes() == gradient.sizes() && kept.scalar_type() == gradient.scalar_type());
    const c10::cuda::CUDAGuard guard{kept.device()};
    BiasActivationGradients gradients{at::empty_like(kept), at::empty_like(bias)};
    HETSEQ_DISPATCH(kept.scalar_type(), "bias_activation_backward", [&] {
        using Value = ComputedType<scalar_t>;
        launch_bias_activation_backward<scalar_t>(data_or_null<scalar_t>(kept),
                                                  data_or_null<Value>(bias),
                                                  data_or_null<scalar_t>(gradient),
                                                  gradients.product.mutable_data_ptr<scalar_t>(),
                                                  gradients.bias.mutable_data_ptr<Value>(),
                                                  to_size(kept.size(0)),
                                                  to_size(kept.size(1)),
                                                  activation,
                                                  current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return gradients;
}

EmbeddingSums embedding_sum_cuda(const EmbeddingTensors& tables,
                                 at::ScalarType type,
                                 const TokenPlaces& places) {
    const c10::cuda::CUDAGuard guard{tables.words.device()};
    const at::TensorOptions options = tables.words.options();
    const std::vector<std::int64_t> sizes{places.rows, places.columns};
    EmbeddingSums sums{
        at::empty(sizes, options),
        c10::isReducedFloatingType(type) ? at::empty(sizes, options.dtype(type)) : at::Tensor{}};
    if (sums.wide.numel() == 0)
        return sums;
    HETSEQ_DISPATCH(type, "embedding_sum", [&] {
        using Value = ComputedType<scalar_t>;
        launch_embedding_sum<scalar_t>(embedding_tables<Value>(tables),
                                       sums.wide.mutable_data_ptr<Value>(),
                                       mutable_data_or_null<scalar_t>(sums.narrow),
                                       places,
                                       current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return sums;
}

at::Tensor outputs_backward_cuda(const at::Tensor& of_wide,
                                 const at::Tensor& of_narrow,
                                 double scale,
                                 at::ScalarType type,
                                 const TokenPlaces& places) {
    const at::Tensor& one = of_wide.defined() ? of_wide : of_narrow;
    const c10::cuda::CUDAGuard guard{one.device()};
    at::Tensor out = at::empty(one.sizes(), one.options().dtype(computed_type(type)));
    if (out.numel() == 0)
        return out;
    HETSEQ_DISPATCH(type, "outputs_backward", [&] {
        using Value = ComputedType<scalar_t>;
        launch_outputs_backward<scalar_t>(data_or_null<Value>(of_wide),
                                          data_or_null<scalar_t>(of_narrow),
                                          out.mutable_data_ptr<Value>(),
                                          scale,
                                          places,
                                          current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return out;
}

}  // namespace hetseq::detail
