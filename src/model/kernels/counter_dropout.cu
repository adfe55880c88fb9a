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
                     std::int64_t calls,  // samples * rows * chunks of a row * lanes
                     DropoutMask mask,
                     DropoutLayout layout,
                     T scale) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread >= calls)
        return;
    const int lane = static_cast<int>(thread % DropoutMask::lanes);
    const std::int64_t row = thread / DropoutMask::lanes / layout.row_chunks();  // of all samples
    const std::int64_t chunk = thread / DropoutMask::lanes % layout.row_chunks();
    const std::int64_t sample = row / layout.rows;
    const std::uint32_t number =
        layout.first_chunk(row % layout.rows) + static_cast<std::uint32_t>(chunk);
    const PhiloxCounter bits =
        philox4x32(mask.counter(static_cast<std::uint64_t>(sample_ids[sample]),
                                number * DropoutMask::lanes + lane),
                   mask.key);
    for (int slot = 0; slot < DropoutMask::slots; ++slot) {
        const std::int64_t element = chunk * DropoutMask::chunk + slot * DropoutMask::lanes + lane;
        if (element >= layout.columns)
            return;
        const std::int64_t at = row * layout.columns + element;
        out[at] = DropoutMask::slot_of(bits, slot) < mask.threshold ? static_cast<T>(x[at] * scale)
                                                                    : T(0);
    }
}

}  // namespace

void counter_dropout_cuda(const at::Tensor& x,
                          const at::Tensor& out,
                          const DropoutMask& mask,
                          const DropoutLayout& layout,
                          const at::Tensor& sample_ids) {
    if (x.numel() == 0)
        return;
    const c10::cuda::CUDAGuard guard{x.device()};
    const std::int64_t calls =
        sample_ids.numel() * layout.rows * layout.row_chunks() * DropoutMask::lanes;
    const auto blocks = static_cast<unsigned>((calls + block_threads - 1) / block_threads);
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "counter_dropout", [&] {
            drop<scalar_t><<<blocks, block_threads, 0, at::cuda::getCurrentCUDAStream()>>>(
                x.const_data_ptr<scalar_t>(),
                out.mutable_data_ptr<scalar_t>(),
                sample_ids.const_data_ptr<std::int64_t>(),
                calls,
                mask,
                layout,
                static_cast<scalar_t>(mask.scale()));
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
}

}  // namespace hetseq::detail
