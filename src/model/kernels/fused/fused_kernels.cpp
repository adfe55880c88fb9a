#include "fused_kernels.hpp"

#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "hetseq/util/error.hpp"

#include "fused_launch.hpp"

namespace hetseq::detail {

namespace {

#define HETSEQ_DISPATCH(type, name, ...) \
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, name, __VA_ARGS__)

at::TensorOptions computed_options(const at::Tensor& x) {
    return x.options().dtype(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
}

cudaStream_t stream() {
    return c10::cuda::getCurrentCUDAStream().stream();
}

template <class T>
const T* data_or_null(const at::Tensor& tensor) {
    HETSEQ_ASSERT(!tensor.defined() || tensor.is_contiguous());
    return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}

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

}  // namespace

Probabilities attention_probabilities_cuda(const at::Tensor& scores, const ScorePlaces& places) {
    HETSEQ_ASSERT(scores.is_contiguous());
    const c10::cuda::CUDAGuard guard{scores.device()};
    Probabilities result{at::empty_like(scores),
                         at::empty({std::int64_t{places.rows}}, computed_options(scores))};
    if (scores.numel() == 0)
        return result;
    HETSEQ_DISPATCH(scores.scalar_type(), "attention_probabilities", [&] {
        launch_attention_probabilities<scalar_t>(
            scores.const_data_ptr<scalar_t>(),
            result.dropped.mutable_data_ptr<scalar_t>(),
            result.log_sums.mutable_data_ptr<ComputedType<scalar_t>>(),
            places,
            stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return result;
}

at::Tensor attention_probabilities_backward_cuda(const at::Tensor& scores,
                                                 const at::Tensor& log_sums,
                                                 const at::Tensor& gradient,
                                                 const ScorePlaces& places) {
    HETSEQ_ASSERT(gradient.is_contiguous() && gradient.scalar_type() == scores.scalar_type());
    const c10::cuda::CUDAGuard guard{scores.device()};
    at::Tensor out = at::empty_like(scores);
    if (scores.numel() == 0)
        return out;
    HETSEQ_DISPATCH(scores.scalar_type(), "attention_probabilities_backward", [&] {
        launch_attention_probabilities_backward<scalar_t>(
            scores.const_data_ptr<scalar_t>(),
            log_sums.const_data_ptr<ComputedType<scalar_t>>(),
            gradient.const_data_ptr<scalar_t>(),
            out.mutable_data_ptr<scalar_t>(),
            places,
            stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return out;
}

ResidualNormed residual_norm_cuda(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const at::Tensor& weight,
                                  const at::Tensor& bias,
                                  const NormPlaces& places) {
    HETSEQ_ASSERT(x.is_contiguous() && residual.is_contiguous() && x.sizes() == residual.sizes());
    const c10::cuda::CUDAGuard guard{x.device()};
    const at::TensorOptions computed = computed_options(x);
    HETSEQ_ASSERT(residual.scalar_type() == c10::typeMetaToScalarType(computed.dtype()) &&
                  weight.scalar_type() == residual.scalar_type());
    const bool is_narrow = x.element_size() == 2;
    ResidualNormed result{at::empty(x.sizes(), computed),
                          is_narrow ? at::empty_like(x) : at::Tensor{},
                          at::empty(x.sizes(), computed),
                          at::empty({std::int64_t{places.rows}}, computed),
                          at::empty({std::int64_t{places.rows}}, computed)};
    if (x.numel() == 0)
        return result;
    HETSEQ_DISPATCH(x.scalar_type(), "residual_norm", [&] {
        using Value = ComputedType<scalar_t>;
        launch_residual_norm<scalar_t>(
            x.const_data_ptr<scalar_t>(),
            residual.const_data_ptr<Value>(),
            weight.const_data_ptr<Value>(),
            bias.const_data_ptr<Value>(),
            {result.sums.mutable_data_ptr<Value>(),
             result.means.mutable_data_ptr<Value>(),
             result.inverse_deviations.mutable_data_ptr<Value>(),
             result.wide.mutable_data_ptr<Value>(),
             is_narrow ? result.narrow.mutable_data_ptr<scalar_t>() : nullptr},
            places,
            stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return result;
}

ResidualNormGradients residual_norm_backward_cuda(const ResidualNormed& kept,
                                                  const at::Tensor& of_wide,
                                                  const at::Tensor& of_narrow,
                                                  const at::Tensor& weight,
                                                  at::ScalarType type,
                                                  const NormPlaces& places) {
    const c10::cuda::CUDAGuard guard{kept.sums.device()};
    const std::int64_t strips = norm_strips(places.rows);
    at::Tensor parts = at::empty({strips, 2, std::int64_t{places.columns}}, kept.sums.options());
    ResidualNormGradients gradients{at::empty(kept.sums.sizes(), kept.sums.options().dtype(type)),
                                    at::empty_like(kept.sums),
                                    {},
                                    {}};
    if (kept.sums.numel() > 0)
        HETSEQ_DISPATCH(type, "residual_norm_backward", [&] {
            using Value = ComputedType<scalar_t>;
            const auto given = norm_gradients<scalar_t>(kept, of_wide, of_narrow);
            launch_residual_norm_backward<scalar_t>(given,
                                                    weight.const_data_ptr<Value>(),
                                                    gradients.residual.mutable_data_ptr<Value>(),
                                                    gradients.x.mutable_data_ptr<scalar_t>(),
                                                    places,
                                                    stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
            launch_norm_parameters_backward<scalar_t>(
                given, parts.mutable_data_ptr<Value>(), places.rows, places.columns, stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
    const at::Tensor sums = parts.sum(0);  // of no strips: zeros
    gradients.weight = sums[0];
    gradients.bias = sums[1];
    return gradients;
}

std::vector<at::Tensor> heads_of_rows_cuda(const at::Tensor& rows, const HeadPlaces& at) {
    HETSEQ_ASSERT(rows.is_contiguous());
    const c10::cuda::CUDAGuard guard{rows.device()};
    std::vector<at::Tensor> heads;
    for (int part = 0; part < at.parts; ++part)
        heads.push_back(
            at::empty({std::int64_t{at.samples} * at.heads, at.length, at.width}, rows.options()));
    if (heads.front().numel() == 0)
        return heads;
    HETSEQ_DISPATCH(rows.scalar_type(), "heads_of_rows", [&] {
        HeadParts<scalar_t> parts;
        for (int part = 0; part < at.parts; ++part)
            parts.of[part] = heads[static_cast<std::size_t>(part)].mutable_data_ptr<scalar_t>();
        launch_heads_of_rows<scalar_t>(rows.const_data_ptr<scalar_t>(), parts, at, stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return heads;
}

at::Tensor rows_of_heads_cuda(const std::vector<at::Tensor>& heads, const HeadPlaces& at) {
    const auto one = std::find_if(
        heads.begin(), heads.end(), [](const at::Tensor& part) { return part.defined(); });
    HETSEQ_ASSERT(one != heads.end() && std::ssize(heads) == at.parts);
    const c10::cuda::CUDAGuard guard{one->device()};
    at::Tensor rows = at::empty({at.rows, std::int64_t{at.parts} * at.columns()}, one->options());
    if (rows.numel() == 0)
        return rows;
    HETSEQ_DISPATCH(rows.scalar_type(), "rows_of_heads", [&] {
        HeadParts<const scalar_t> parts;
        for (int part = 0; part < at.parts; ++part)
            parts.of[part] = data_or_null<scalar_t>(heads[static_cast<std::size_t>(part)]);
        launch_rows_of_heads<scalar_t>(parts, rows.mutable_data_ptr<scalar_t>(), at, stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return rows;
}

}  // namespace hetseq::detail
