#include "gradient_norm.hpp"

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "sum_of_squares_launch.hpp"

namespace hetseq::detail {

std::int64_t gradient_norm_sums(std::int64_t numel) {
    return sums_of_squares(numel);
}

void sums_of_squares_cuda(const at::Tensor& gradients, at::Tensor& sums) {
    const c10::cuda::CUDAGuard guard{gradients.device()};
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, gradients.scalar_type(), "sums_of_squares", [&] {
            launch_sum_of_squares(gradients.const_data_ptr<scalar_t>(),
                                  gradients.numel(),
                                  sums.mutable_data_ptr<double>(),
                                  c10::cuda::getCurrentCUDAStream().stream());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
}

}  // namespace hetseq::detail
