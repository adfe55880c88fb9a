#include "hetseq/model/dropout.hpp"

#include <algorithm>
#include <cmath>

#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/util/error.hpp"

#include "kernels/counter_dropout.hpp"

namespace hetseq {

namespace detail {

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
    const auto chunks = [](std::int64_t columns) {
        return (columns + detail::DropoutMask::chunk - 1) / detail::DropoutMask::chunk;
    };
    const std::int64_t elements = x.numel() / std::max<std::int64_t>(ids.numel(), 1);
    if (extent.columns == 0)
        return {.columns = elements, .most_row_chunks = chunks(elements)};
    return {.rows = x.numel() == 0 ? 0 : elements / x.size(3),
            .columns = x.size(3),
            .inner_rows = x.size(2),
            .most_inner_rows = extent.rows,
            .most_row_chunks = chunks(extent.columns)};
}

at::Tensor apply_mask(const at::Tensor& x,
                      const detail::DropoutMask& mask,
                      const at::Tensor& ids,
                      const DropoutExtent& extent) {
    const detail::DropoutLayout layout = layout_of(x, ids, extent);
    const at::Tensor from = x.contiguous();
    at::Tensor out = at::empty_like(from);
    if (x.is_cuda())
        detail::counter_dropout_cuda(from, out, mask, layout, ids);
    else
        detail::counter_dropout_cpu(from, out, mask, layout, ids);
    return out;
}

/// Linear in x, so backward is the function itself.
struct CounterDropout : torch::autograd::Function<CounterDropout> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              double p,
                              std::int64_t seed,
                              std::int64_t update,
                              std::int64_t layer,
                              std::int64_t most_rows,
                              std::int64_t most_columns,
                              const at::Tensor& sample_ids) {
        context->save_for_backward({sample_ids});
        context->saved_data["p"] = p;
        context->saved_data["seed"] = seed;
        context->saved_data["update"] = update;
        context->saved_data["layer"] = layer;
        context->saved_data["most_rows"] = most_rows;
        context->saved_data["most_columns"] = most_columns;
        const DropoutKey key{
            static_cast<std::uint64_t>(seed), update, static_cast<std::uint32_t>(layer)};
        return apply_mask(
            x, detail::make_dropout_mask(p, key), sample_ids, {most_rows, most_columns});
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const at::Tensor gradient = apply(gradients[0],
                                          context->saved_data["p"].toDouble(),
                                          context->saved_data["seed"].toInt(),
                                          context->saved_data["update"].toInt(),
                                          context->saved_data["layer"].toInt(),
                                          context->saved_data["most_rows"].toInt(),
                                          context->saved_data["most_columns"].toInt(),
                                          context->get_saved_variables()[0]);
        return {gradient, {}, {}, {}, {}, {}, {}, {}};
    }
};

struct TokenDropout : torch::autograd::Function<TokenDropout> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              double p,
                              std::int64_t seed,
                              std::int64_t update,
                              std::int64_t layer,
                              const at::Tensor& sample_ids,
                              const at::Tensor& positions) {
        context->save_for_backward({sample_ids, positions});
        context->saved_data["p"] = p;
        context->saved_data["seed"] = seed;
        context->saved_data["update"] = update;
        context->saved_data["layer"] = layer;
        const detail::DropoutMask mask = detail::make_dropout_mask(
            p, {static_cast<std::uint64_t>(seed), update, static_cast<std::uint32_t>(layer)});
        const at::Tensor from = x.contiguous();
        at::Tensor out = at::empty_like(from);
        if (x.is_cuda())
            detail::token_dropout_cuda(from, out, mask, sample_ids, positions);
        else
            detail::token_dropout_cpu(from, out, mask, sample_ids, positions);
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor gradient = apply(gradients[0],
                                          context->saved_data["p"].toDouble(),
                                          context->saved_data["seed"].toInt(),
                                          context->saved_data["update"].toInt(),
                                          context->saved_data["layer"].toInt(),
                                          saved[0],
                                          saved[1]);
        return {gradient, {}, {}, {}, {}, {}, {}};
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
    return CounterDropout::apply(x,
                                 p,
                                 static_cast<std::int64_t>(key.seed),
                                 key.update,
                                 static_cast<std::int64_t>(key.layer),
                                 extent.rows,
                                 extent.columns,
                                 sample_ids);
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
    return TokenDropout::apply(x,
                               p,
                               static_cast<std::int64_t>(key.seed),
                               key.update,
                               static_cast<std::int64_t>(key.layer),
                               sample_ids,
                               positions);
}

}  // namespace hetseq
