#include "adadelta.hpp"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

namespace hetseq::detail {

namespace {

constexpr int block_threads = 256;

template <class T>
__global__ void update(T* __restrict__ value,
                       const T* __restrict__ gradient,
                       T* __restrict__ square_avg,
                       T* __restrict__ acc_delta,
                       std::int64_t count,
                       T lr,
                       T rho,
                       T rest,  // 1 - rho
                       T eps,
                       T decay) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const T g = gradient[i] + decay * value[i];
    square_avg[i] = rho * square_avg[i] + rest * g * g;
    const T delta = sqrt(acc_delta[i] + eps) / sqrt(square_avg[i] + eps) * g;
    acc_delta[i] = rho * acc_delta[i] + rest * delta * delta;
    value[i] -= lr * delta;
}

}  // namespace

void adadelta_cuda(const AdadeltaTensors& tensors, const AdadeltaStep& step) {
    const c10::cuda::CUDAGuard guard{tensors.values.device()};
    const std::int64_t count = tensors.values.numel();
    const auto blocks = static_cast<unsigned>((count + block_threads - 1) / block_threads);
    AT_DISPATCH_FLOATING_TYPES(tensors.values.scalar_type(), "adadelta", [&] {
        update<scalar_t><<<blocks, block_threads, 0, at::cuda::getCurrentCUDAStream()>>>(
            tensors.values.mutable_data_ptr<scalar_t>(),
            tensors.gradients.const_data_ptr<scalar_t>(),
            tensors.square_avg.mutable_data_ptr<scalar_t>(),
            tensors.acc_delta.mutable_data_ptr<scalar_t>(),
            count,
            static_cast<scalar_t>(step.lr),
            static_cast<scalar_t>(step.rho),
            static_cast<scalar_t>(1 - step.rho),
            static_cast<scalar_t>(step.eps),
            static_cast<scalar_t>(step.weight_decay));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
}

}  // namespace hetseq::detail
