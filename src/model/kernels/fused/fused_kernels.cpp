#include "fused_kernels.hpp"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "hetseq/util/error.hpp"

#include "fused_dispatch.hpp"

namespace hetseq::detail {

Probabilities attention_probabilities_cuda(const at::Tensor& scores, const ScorePlaces& places) {
    HETSEQ_ASSERT(scores.is_contiguous());
    const c10::cuda::CUDAGuard guard{scores.device()};
    Probabilities result{at::empty_like(scores),
                         at::empty({std::int64_t{places.rows}},
                                   scores.options().dtype(computed_type(scores.scalar_type())))};
    if (scores.numel() == 0)
        return result;
    HETSEQ_DISPATCH(scores.scalar_type(), "attention_probabilities", [&] {
        launch_attention_probabilities<scalar_t>(
            scores.const_data_ptr<scalar_t>(),
            result.dropped.mutable_data_ptr<scalar_t>(),
            result.log_sums.mutable_data_ptr<ComputedType<scalar_t>>(),
            places,
            current_stream());
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
            current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return out;
}

std::vector<at::Tensor> heads_of_rows_cuda(const at::Tensor& rows,
                                           const at::Tensor& bias,
                                           const HeadPlaces& at) {
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
        launch_heads_of_rows<scalar_t>(rows.const_data_ptr<scalar_t>(),
                                       data_or_null<ComputedType<scalar_t>>(bias),
                                       parts,
                                       at,
                                       current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return heads;
}

namespace {

const at::Tensor& one_of(const std::vector<at::Tensor>& heads, const HeadPlaces& at) {
    const auto one = std::find_if(
        heads.begin(), heads.end(), [](const at::Tensor& part) { return part.defined(); });
    HETSEQ_ASSERT(one != heads.end() && std::ssize(heads) == at.parts);
    return *one;
}

at::Tensor empty_rows(const at::TensorOptions& options, const HeadPlaces& at) {
    return at::empty({at.rows, std::int64_t{at.parts} * at.columns()}, options);
}

template <class T>
HeadParts<const T> head_parts(const std::vector<at::Tensor>& heads) {
    HeadParts<const T> parts;
    for (std::size_t part = 0; part < heads.size(); ++part)
        parts.of[part] = data_or_null<T>(heads[part]);
    return parts;
}

}  // namespace

at::Tensor rows_of_heads_cuda(const std::vector<at::Tensor>& heads, const HeadPlaces& at) {
    const at::Tensor& one = one_of(heads, at);
    const c10::cuda::CUDAGuard guard{one.device()};
    at::Tensor rows = empty_rows(one.options(), at);
    if (rows.numel() == 0)
        return rows;
    HETSEQ_DISPATCH(rows.scalar_type(), "rows_of_heads", [&] {
        launch_rows_of_heads<scalar_t>(
            head_parts<scalar_t>(heads), rows.mutable_data_ptr<scalar_t>(), at, current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return rows;
}

RowsAndSums rows_of_heads_and_sums_cuda(const std::vector<at::Tensor>& heads,
                                        const HeadPlaces& at) {
    const at::Tensor& one = one_of(heads, at);
    const c10::cuda::CUDAGuard guard{one.device()};
    RowsAndSums result{empty_rows(one.options(), at), {}};
    result.sums =
        at::empty({result.rows.size(1)}, one.options().dtype(computed_type(one.scalar_type())));
    HETSEQ_DISPATCH(one.scalar_type(), "rows_of_heads_and_sums", [&] {
        launch_rows_of_heads_and_sums<scalar_t>(
            head_parts<scalar_t>(heads),
            result.rows.mutable_data_ptr<scalar_t>(),
            result.sums.mutable_data_ptr<ComputedType<scalar_t>>(),
            at,
            current_stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
    return result;
}

}  // namespace hetseq::detail
