#include "counter_dropout.hpp"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

namespace hetseq::detail {

namespace {

constexpr int block_threads = 256;

/// One thread per Philox call: lane `thread % 16` of chunk `thread / 16`, eight elements each.
template <class T>
__global__ void drop(const T* x,
                     T* out,
                     const std::int64_t* sample_ids,
                     std::int64_t per_sample,
                     std::int64_t chunks,  // of one sample
                     std::int64_t calls,   // samples * chunks * lanes
                     DropoutMask mask,
                     T scale) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread >= calls)
        return;
    const int lane = static_cast<int>(thread % DropoutMask::lanes);
    const std::int64_t sample = thread / DropoutMask::lanes / chunks;
    const std::int64_t chunk = thread / DropoutMask::lanes % chunks;
    const PhiloxCounter bits =
        philox4x32(mask.counter(static_cast<std::uint64_t>(sample_ids[sample]),
                                static_cast<std::uint32_t>(chunk * DropoutMask::lanes + lane)),
                   mask.key);
    for (int slot = 0; slot < DropoutMask::slots; ++slot) {
        const std::int64_t element = chunk * DropoutMask::chunk + slot * DropoutMask::lanes + lane;
        if (element >= per_sample)
            return;
        const std::int64_t at = sample * per_sample + element;
        out[at] = DropoutMask::slot_of(bits, slot) < mask.threshold ? static_cast<T>(x[at] * scale)
                                                                    : T(0);
    }
}

}  // namespace

void counter_dropout_cuda(const at::Tensor& x,
                          const at::Tensor& out,
                          const DropoutMask& mask,
                          const at::Tensor& sample_ids) {
    if (x.numel() == 0)
        return;
    const c10::cuda::CUDAGuard guard{x.device()};
    const std::int64_t per_sample = x.numel() / sample_ids.numel();
    const std::int64_t chunks = (per_sample + DropoutMask::chunk - 1) / DropoutMask::chunk;
    const std::int64_t calls = sample_ids.numel() * chunks * DropoutMask::lanes;
    const auto blocks = static_cast<unsigned>((calls + block_threads - 1) / block_threads);
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "counter_dropout", [&] {
            drop<scalar_t><<<blocks, block_threads, 0, at::cuda::getCurrentCUDAStream()>>>(
                x.const_data_ptr<scalar_t>(),
                out.mutable_data_ptr<scalar_t>(),
                sample_ids.const_data_ptr<std::int64_t>(),
                per_sample,
                chunks,
                calls,
                mask,
                static_cast<scalar_t>(mask.scale()));
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
}

}  // namespace hetseq::detail
