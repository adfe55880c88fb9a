#include "gradient_norm.hpp"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "sum_of_squares_launch.hpp"

namespace hetseq::detail {

at::Tensor gradient_norm_cuda(const at::Tensor& gradients) {
    const c10::cuda::CUDAGuard guard{gradients.device()};
    const at::Tensor sums =
        at::empty({sums_of_squares(gradients.numel())}, gradients.options().dtype(at::kDouble));
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, gradients.scalar_type(), "gradient_norm", [&] {
            launch_sum_of_squares(gradients.const_data_ptr<scalar_t>(),
                                  gradients.numel(),
                                  sums.mutable_data_ptr<double>(),
                                  c10::cuda::getCurrentCUDAStream().stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
    return sums.sum().sqrt();
}

}  // namespace hetseq::detail
