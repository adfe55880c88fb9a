#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include "hetseq/util/error.hpp"

#include "kernels/sum_of_squares.hpp"

#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t block = 65536;  // elements; fixed, so that threads don't change the sum

template <class T>
double norm_of(const T* x, std::int64_t count) {
    const std::int64_t blocks = (count + block - 1) / block;
    std::vector<double> sums(static_cast<std::size_t>(blocks));
    at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b)
            sums[static_cast<std::size_t>(b)] =
                detail::sum_of_squares(x + b * block, std::min(block, count - b * block));
    });
    double sum = 0;
    for (const double part : sums)
        sum += part;
    return std::sqrt(sum);
}

}  // namespace

at::Tensor gradient_norm(const at::Tensor& gradients) {
    HETSEQ_ASSERT(gradients.dim() == 1 && gradients.is_contiguous());
    if (!gradients.is_cpu())
        return at::linalg_vector_norm(gradients, 2, at::OptionalIntArrayRef{}, false, at::kDouble);
    double norm = 0;
    AT_DISPATCH_FLOATING_TYPES(gradients.scalar_type(), "gradient_norm", [&] {
        norm = norm_of(gradients.const_data_ptr<scalar_t>(), gradients.numel());
    });
    return at::scalar_tensor(norm, at::kDouble);
}

}  // namespace hetseq
