#include "step_gate.hpp"

#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "step_gate_launch.hpp"

namespace hetseq::detail {

void set_step_gate_cuda(const at::Tensor& status,
                        const at::Tensor& norm,
                        const GradientLimits& limits,
                        at::Tensor& closed,
                        at::Tensor& factor) {
    const c10::cuda::CUDAGuard guard{closed.device()};
    const StepGateInput input{
        status.const_data_ptr<double>(), status.numel(), norm.const_data_ptr<double>(), limits};
    AT_DISPATCH_FLOATING_TYPES(factor.scalar_type(), "step_gate", [&] {
        launch_step_gate(input,
                         closed.mutable_data_ptr<float>(),
                         factor.mutable_data_ptr<scalar_t>(),
                         c10::cuda::getCurrentCUDAStream().stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
}

void scale_cuda(at::Tensor& values, const at::Tensor& factor) {
    if (values.numel() == 0)
        return;
    const c10::cuda::CUDAGuard guard{values.device()};
    AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "scale", [&] {
        launch_scale(values.mutable_data_ptr<scalar_t>(),
                     values.numel(),
                     factor.const_data_ptr<scalar_t>(),
                     c10::cuda::getCurrentCUDAStream().stream());
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
}

}  // namespace hetseq::detail
