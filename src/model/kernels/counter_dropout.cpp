#include "counter_dropout.hpp"

#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "hetseq/util/error.hpp"

#include "counter_dropout_launch.hpp"

namespace hetseq::detail {

namespace {

// torch.compile captures none where LibTorch has a tag for that, which the operators then bear.
void refuse_capture() {
    if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None)
        throw BadConfig(
            "dropout keyed by sample ids cannot be captured into a CUDA graph",
            "the graph would repeat the seed, the update and the samples of its capture",
            "compile the model without mode=\"reduce-overhead\"");
}

}  // namespace

void counter_dropout_cuda(const at::Tensor& x,
                          const at::Tensor& out,
                          const DropoutMask& mask,
                          const DropoutLayout& layout,
                          const at::Tensor& sample_ids) {
    if (x.numel() == 0)
        return;
    HETSEQ_ASSERT(fits_dropout_grid(layout));
    const c10::cuda::CUDAGuard guard{x.device()};
    refuse_capture();
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "counter_dropout", [&] {
            const DropoutTensors<scalar_t> tensors{x.const_data_ptr<scalar_t>(),
                                                   out.mutable_data_ptr<scalar_t>(),
                                                   sample_ids.const_data_ptr<std::int64_t>(),
                                                   sample_ids.numel()};
            launch_dropout(
                tensors, mask, dropout_grid(layout), c10::cuda::getCurrentCUDAStream().stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
}

void matrix_dropout_cuda(const at::Tensor& x,
                         const at::Tensor& out,
                         const DropoutMask& mask,
                         const DropoutMatrices& places,
                         const at::Tensor& sample_ids) {
    if (x.numel() == 0)
        return;
    const c10::cuda::CUDAGuard guard{x.device()};
    refuse_capture();
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "matrix_dropout", [&] {
            const DropoutTensors<scalar_t> tensors{x.const_data_ptr<scalar_t>(),
                                                   out.mutable_data_ptr<scalar_t>(),
                                                   sample_ids.const_data_ptr<std::int64_t>(),
                                                   sample_ids.numel()};
            launch_matrix_dropout(
                tensors, mask, MatrixGrid{places}, c10::cuda::getCurrentCUDAStream().stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
}

void token_dropout_cuda(const at::Tensor& x,
                        const at::Tensor& out,
                        const DropoutMask& mask,
                        const at::Tensor& sample_ids,
                        const at::Tensor& positions) {
    if (x.numel() == 0)
        return;
    HETSEQ_ASSERT(fits_token_grid(x.size(0), x.size(1)));
    const c10::cuda::CUDAGuard guard{x.device()};
    refuse_capture();
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "token_dropout", [&] {
            const TokenDropoutTensors<scalar_t> tensors{x.const_data_ptr<scalar_t>(),
                                                        out.mutable_data_ptr<scalar_t>(),
                                                        sample_ids.const_data_ptr<std::int64_t>(),
                                                        positions.const_data_ptr<std::int64_t>()};
            launch_token_dropout(tensors,
                                 mask,
                                 token_grid(x.size(0), x.size(1)),
                                 c10::cuda::getCurrentCUDAStream().stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
}

}  // namespace hetseq::detail
