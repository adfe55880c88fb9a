#include "hetseq/model/dropout.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/util/error.hpp"

#include "kernels/counter_dropout.hpp"
#include "saved_dropout.hpp"

namespace hetseq {

namespace detail {

namespace {

std::int64_t chunks_of(std::int64_t columns) {
    return (columns + DropoutMask::chunk - 1) / DropoutMask::chunk;
}

}  // namespace

DropoutLayout padded_layout(std::int64_t matrices,
                            std::int64_t rows,
                            std::int64_t columns,
                            const DropoutExtent& extent) {
    return {.rows = matrices * rows,
            .columns = columns,
            .inner_rows = rows,
            .most_inner_rows = extent.rows,
            .most_row_chunks = chunks_of(extent.columns)};
}

DropoutMask make_dropout_mask(double p, const DropoutKey& key) {
    HETSEQ_ASSERT(p >= 0 && p < 1);
    HETSEQ_ASSERT(key.update >= 0 && key.update < (std::int64_t{1} << 32));
    HETSEQ_ASSERT(key.layer < (1u << 16));
    DropoutMask mask;
    mask.key = {{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
    mask.update = static_cast<std::uint32_t>(key.update);
    mask.layer = key.layer;
    mask.threshold = static_cast<std::uint32_t>(std::max(1.0, std::round((1 - p) * 65536)));
    return mask;
}

}  // namespace detail

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check_shapes(const at::Tensor& x, const at::Tensor& sample_ids) {
    HETSEQ_ASSERT(x.dim() >= 1 && sample_ids.dim() == 1);
    HETSEQ_ASSERT(sample_ids.scalar_type() == at::kLong && sample_ids.is_contiguous());
    HETSEQ_ASSERT(sample_ids.device() == x.device());
    HETSEQ_ASSERT(sample_ids.numel() > 0 ? x.size(0) % sample_ids.numel() == 0 : x.numel() == 0);
}

// Without an extent, a sample is one row.
detail::DropoutLayout layout_of(const at::Tensor& x,
                                const at::Tensor& ids,
                                const DropoutExtent& extent) {
    const std::int64_t elements = x.numel() / std::max<std::int64_t>(ids.numel(), 1);
    if (extent.columns == 0)
        return {.columns = elements, .most_row_chunks = detail::chunks_of(elements)};
    const std::int64_t matrices = x.numel() == 0 ? 0 : elements / (x.size(2) * x.size(3));
    return detail::padded_layout(matrices, x.size(2), x.size(3), extent);
}

// With `positions`, each row is a token of a sample; without, samples are whole, up to `extent`.
at::Tensor apply_mask(const at::Tensor& x,
                      const detail::DropoutMask& mask,
                      const DropoutExtent& extent,
                      const at::Tensor& ids,
                      const std::optional<at::Tensor>& positions) {
    if (x.is_cpu() && c10::isReducedFloatingType(x.scalar_type()))
        return apply_mask(x.to(at::kFloat), mask, extent, ids, positions).to(x.scalar_type());
    const at::Tensor from = x.contiguous();
    at::Tensor out = at::empty_like(from);
    RECORD_FUNCTION("hetseq::dropout", std::vector<c10::IValue>({from, out}));
    if (positions) {
        const auto& drop = x.is_cuda() ? detail::token_dropout_cuda : detail::token_dropout_cpu;
        drop(from, out, mask, ids, *positions);
    } else {
        const auto& drop = x.is_cuda() ? detail::counter_dropout_cuda : detail::counter_dropout_cpu;
        drop(from, out, mask, layout_of(x, ids, extent), ids);
    }
    return out;
}

/// Linear in x, so backward is the function itself.
struct CounterDropout : torch::autograd::Function<CounterDropout> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              double p,
                              const DropoutKey& key,
                              const DropoutExtent& extent,
                              const at::Tensor& sample_ids,
                              const std::optional<at::Tensor>& positions) {
        context->save_for_backward({sample_ids, positions.value_or(at::Tensor{})});
        detail::save_dropout(*context, p, key);
        context->saved_data["most_rows"] = extent.rows;
        context->saved_data["most_columns"] = extent.columns;
        return apply_mask(x, detail::make_dropout_mask(p, key), extent, sample_ids, positions);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const detail::SavedDropout dropout = detail::saved_dropout(*context);
        const auto number = [&](const char* name) { return context->saved_data[name].toInt(); };
        const at::Tensor gradient =
            apply(gradients[0],
                  dropout.p,
                  dropout.key,
                  DropoutExtent{number("most_rows"), number("most_columns")},
                  saved[0],
                  saved[1].defined() ? std::make_optional(saved[1]) : std::nullopt);
        return {gradient, {}, {}, {}, {}, {}};
    }
};

}  // namespace

at::Tensor counter_dropout(const at::Tensor& x,
                           double p,
                           const DropoutKey& key,
                           const at::Tensor& sample_ids) {
    return counter_dropout(x, p, key, sample_ids, DropoutExtent{});
}

at::Tensor counter_dropout(const at::Tensor& x,
                           double p,
                           const DropoutKey& key,
                           const at::Tensor& sample_ids,
                           const DropoutExtent& extent) {
    HETSEQ_ASSERT(p >= 0 && p < 1);
    if (p == 0)
        return x;
    check_shapes(x, sample_ids);
    HETSEQ_ASSERT(extent.columns == 0 ||
                  (x.dim() == 4 && x.size(2) <= extent.rows && x.size(3) <= extent.columns));
    return CounterDropout::apply(x, p, key, extent, sample_ids, std::optional<at::Tensor>{});
}

at::Tensor token_dropout(const at::Tensor& x,
                         double p,
                         const DropoutKey& key,
                         const at::Tensor& sample_ids,
                         const at::Tensor& positions) {
    HETSEQ_ASSERT(p >= 0 && p < 1);
    if (p == 0)
        return x;
    HETSEQ_ASSERT(x.dim() == 2);
    for (const at::Tensor& of_rows : {sample_ids, positions}) {
        HETSEQ_ASSERT(of_rows.dim() == 1 && of_rows.numel() == x.size(0));
        HETSEQ_ASSERT(of_rows.scalar_type() == at::kLong && of_rows.is_contiguous());
        HETSEQ_ASSERT(of_rows.device() == x.device());
    }
    return CounterDropout::apply(
        x, p, key, DropoutExtent{}, sample_ids, std::make_optional(positions));
}

}  // namespace hetseq
