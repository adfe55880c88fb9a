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

/// One thread per Philox call that a row of tokens can need; the first and the last chunk of a row
/// may reach into its neighbours.
template <class T>
__global__ void drop_tokens(const T* x,
                            T* out,
                            const std::int64_t* sample_ids,
                            const std::int64_t* positions,
                            std::int64_t calls,  // rows * chunks of a row * lanes
                            std::int64_t row_chunks,
                            std::int64_t columns,
                            DropoutMask mask,
                            T scale) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (thread >= calls)
        return;
    const int lane = static_cast<int>(thread % DropoutMask::lanes);
    const std::int64_t row = thread / DropoutMask::lanes / row_chunks;
    const std::int64_t first = positions[row] * columns;  // element of the sample
    const std::int64_t chunk =
        first / DropoutMask::chunk + thread / DropoutMask::lanes % row_chunks;
    const PhiloxCounter bits =
        philox4x32(mask.counter(static_cast<std::uint64_t>(sample_ids[row]),
                                static_cast<std::uint32_t>(chunk) * DropoutMask::lanes + lane),
                   mask.key);
    for (int slot = 0; slot < DropoutMask::slots; ++slot) {
        const std::int64_t element =
            chunk * DropoutMask::chunk + slot * DropoutMask::lanes + lane - first;
        if (element < 0 || element >= columns)
            continue;
        const std::int64_t at = row * columns + element;
        out[at] = DropoutMask::slot_of(bits, slot) < mask.threshold ? static_cast<T>(x[at] * scale)
                                                                    : T(0);
    }
}

unsigned blocks_for(std::int64_t calls) {
    return static_cast<unsigned>((calls + block_threads - 1) / block_threads);
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
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "counter_dropout", [&] {
            drop<scalar_t>
                <<<blocks_for(calls), block_threads, 0, at::cuda::getCurrentCUDAStream()>>>(
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

void token_dropout_cuda(const at::Tensor& x,
                        const at::Tensor& out,
                        const DropoutMask& mask,
                        const at::Tensor& sample_ids,
                        const at::Tensor& positions) {
    if (x.numel() == 0)
        return;
    const c10::cuda::CUDAGuard guard{x.device()};
    const std::int64_t columns = x.size(1);
    const bool is_whole = columns % DropoutMask::chunk == 0;
    const std::int64_t row_chunks = columns / DropoutMask::chunk + (is_whole ? 0 : 2);
    const std::int64_t calls = x.size(0) * row_chunks * DropoutMask::lanes;
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, x.scalar_type(), "token_dropout", [&] {
            drop_tokens<scalar_t>
                <<<blocks_for(calls), block_threads, 0, at::cuda::getCurrentCUDAStream()>>>(
                    x.const_data_ptr<scalar_t>(),
                    out.mutable_data_ptr<scalar_t>(),
                    sample_ids.const_data_ptr<std::int64_t>(),
                    positions.const_data_ptr<std::int64_t>(),
                    calls,
                    row_chunks,
                    columns,
                    mask,
                    static_cast<scalar_t>(mask.scale()));
            C10_CUDA_KERNEL_LAUNCH_CHECK();
        });
}

}  // namespace hetseq::detail
