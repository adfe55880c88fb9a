#include "block_squares.hpp"

#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "hetseq/util/error.hpp"

#include "kernels/sum_of_squares.hpp"

namespace hetseq::detail {

void block_squares(const at::Tensor& x,
                   std::span<const FlatParameters::Block> blocks,
                   double* squares) {
    HETSEQ_ASSERT(x.dim() == 1 && x.is_contiguous());
    constexpr std::int64_t least_for_a_thread = 4;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "block_squares", [&] {
        const scalar_t* data = x.const_data_ptr<scalar_t>();
        at::parallel_for(
            0, std::ssize(blocks), least_for_a_thread, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t b = begin; b < end; ++b) {
                    const auto& block = blocks[static_cast<std::size_t>(b)];
                    squares[b] = sum_of_squares(data + block.offset, block.numel);
                }
            });
    });
}

double norm_of(std::span<const double> squares) {
    double sum = 0;
    for (const double square : squares)
        sum += square;
    return std::sqrt(sum);
}

}  // namespace hetseq::detail
