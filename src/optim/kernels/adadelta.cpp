#include "adadelta.hpp"

#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "adadelta_launch.hpp"

namespace hetseq::detail {

void adadelta_cuda(const AdadeltaTensors& tensors,
                   const at::Tensor& closed,
                   const AdadeltaStep& step) {
    if (tensors.values.numel() == 0)
        return;
    const c10::cuda::CUDAGuard guard{tensors.values.device()};
    AT_DISPATCH_FLOATING_TYPES(tensors.values.scalar_type(), "adadelta", [&] {
        const AdadeltaArrays<scalar_t> arrays{
            tensors.values.mutable_data_ptr<scalar_t>(),
            tensors.gradients.const_data_ptr<scalar_t>(),
            tensors.square_avg.mutable_data_ptr<scalar_t>(),
            tensors.acc_delta.mutable_data_ptr<scalar_t>(),
            tensors.values.numel(),
            closed.defined() ? closed.const_data_ptr<float>() : nullptr};
        launch_adadelta(arrays, step, c10::cuda::getCurrentCUDAStream().stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
}

}  // namespace hetseq::detail
