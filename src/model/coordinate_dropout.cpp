#include "hetseq/model/coordinate_dropout.hpp"

#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>

#include "hetseq/util/error.hpp"

#include "kernels/counter_dropout.hpp"
#include "kernels/dropout_grid.hpp"

namespace hetseq {

namespace {

detail::DropoutMatrices places_of(const at::Tensor& x) {
    detail::DropoutMatrices places;
    const std::int64_t rows = x.size(-2), columns = x.size(-1);
    std::int64_t matrices = 1;
    for (std::int64_t d = x.dim() - 3; d > 0; --d) {
        places.outer[places.outer_dims++] = static_cast<std::uint32_t>(x.size(d));
        matrices *= x.size(d);
    }
    if (!detail::fits_matrix_grid(matrices, rows, columns))
        throw BadConfig(
            "dropout of " + std::to_string(matrices * rows * columns) + " elements in one sample",
            "they are numbered in 32 bits",
            "cut the sample into several");
    places.matrices = static_cast<std::uint32_t>(matrices);
    places.rows = static_cast<std::uint32_t>(rows);
    places.columns = static_cast<std::uint32_t>(columns);
    return places;
}

}  // namespace

at::Tensor coordinate_dropout(const at::Tensor& x,
                              double p,
                              const DropoutKey& key,
                              const at::Tensor& sample_ids) {
    const at::NoGradGuard no_grad;
    HETSEQ_ASSERT(x.dim() >= 1 && sample_ids.dim() == 1 && x.size(0) == sample_ids.numel());
    if (x.dim() <= 2 || p == 0)  // one coordinate is as good as an index
        return counter_dropout(x, p, key, sample_ids);
    if (x.is_cpu() && c10::isReducedFloatingType(x.scalar_type()))
        return coordinate_dropout(x.to(at::kFloat), p, key, sample_ids).to(x.scalar_type());
    HETSEQ_ASSERT(sample_ids.scalar_type() == at::kLong && sample_ids.is_contiguous());
    HETSEQ_ASSERT(sample_ids.device() == x.device());
    constexpr int most = detail::DropoutMatrices::most_outer + 3;
    if (x.dim() > most)
        throw BadConfig("dropout of a tensor of " + std::to_string(x.dim()) + " dimensions",
                        "at most " + std::to_string(most) + " are supported",
                        "flatten dimensions of fixed size before it");
    const at::Tensor from = x.contiguous();
    at::Tensor out = at::empty_like(from);
    if (x.numel() == 0)
        return out;
    RECORD_FUNCTION("hetseq::dropout", std::vector<c10::IValue>({from, out}));
    const detail::DropoutMask mask = detail::make_dropout_mask(p, key);
    const auto& drop = x.is_cuda() ? detail::matrix_dropout_cuda : detail::matrix_dropout_cpu;
    drop(from, out, mask, places_of(from), sample_ids);
    return out;
}

}  // namespace hetseq
