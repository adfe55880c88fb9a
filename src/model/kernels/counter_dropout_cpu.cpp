#include <algorithm>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "counter_dropout.hpp"
#include "dropout_loops.hpp"

namespace hetseq::detail {

void counter_dropout_cpu(const at::Tensor& x,
                         const at::Tensor& out,
                         const DropoutMask& mask,
                         const at::Tensor& sample_ids) {
    constexpr std::int64_t chunk = DropoutMask::chunk;
    const std::int64_t samples = sample_ids.numel();
    if (x.numel() == 0)
        return;
    const std::int64_t per_sample = x.numel() / samples;
    const std::int64_t chunks = (per_sample + chunk - 1) / chunk;  // of one sample
    const auto* ids = sample_ids.const_data_ptr<std::int64_t>();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "counter_dropout", [&] {
        const auto* from = x.const_data_ptr<scalar_t>();
        auto* to = out.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, samples * chunks, 64, [&](std::int64_t begin, std::int64_t end) {
            while (begin < end) {
                const std::int64_t sample = begin / chunks;
                const std::int64_t first = begin % chunks;
                const std::int64_t last = std::min(chunks, first + end - begin);
                const std::int64_t offset = sample * per_sample + first * chunk;
                const DropoutPiece piece{static_cast<std::uint64_t>(ids[sample]),
                                         static_cast<std::uint32_t>(first),
                                         std::min(per_sample, last * chunk) - first * chunk};
                drop(mask, piece, from + offset, to + offset);
                begin += last - first;
            }
        });
    });
}

}  // namespace hetseq::detail
