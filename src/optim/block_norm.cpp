#include "block_norm.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "kernels/sum_of_squares.hpp"

namespace hetseq::detail {

namespace {

constexpr std::int64_t block = 65536;  // elements; fixed, so that threads don't change the sum

}  // namespace

std::size_t norm_blocks(std::int64_t numel) {
    return static_cast<std::size_t>((numel + block - 1) / block);
}

double block_norm(const at::Tensor& x, std::vector<double>& block_sums) {
    const std::int64_t count = x.numel();
    const std::size_t blocks = norm_blocks(count);
    block_sums.resize(std::max(block_sums.size(), blocks));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "block_norm", [&] {
        const scalar_t* data = x.const_data_ptr<scalar_t>();
        at::parallel_for(
            0, static_cast<std::int64_t>(blocks), 1, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t b = begin; b < end; ++b)
                    block_sums[static_cast<std::size_t>(b)] =
                        sum_of_squares(data + b * block, std::min(block, count - b * block));
            });
    });
    double sum = 0;
    for (std::size_t b = 0; b < blocks; ++b)
        sum += block_sums[b];
    return std::sqrt(sum);
}

}  // namespace hetseq::detail
