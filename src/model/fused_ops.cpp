#include "fused_ops.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/autocast.hpp"

#include "kernels/fused/fused_kernels.hpp"
#include "saved_dropout.hpp"

namespace hetseq::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::uint32_t to_size(std::int64_t number) {
    HETSEQ_ASSERT(number >= 0 && number < (std::int64_t{1} << 32));
    return static_cast<std::uint32_t>(number);
}

const std::int64_t* numbers_or_null(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.const_data_ptr<std::int64_t>() : nullptr;
}

template <class Places>
void set_mask(Places& places, const Dropout& dropout) {
    if (dropout.p == 0)
        return;
    places.mask = make_dropout_mask(dropout.p, dropout.key);
    places.keep_scale = places.mask.scale();
    places.sample_ids = numbers_or_null(dropout.sample_ids);
}

Dropout saved_dropout(AutogradContext& context, at::Tensor sample_ids, at::Tensor positions) {
    const SavedDropout saved = detail::saved_dropout(context);
    return {saved.p, saved.key, std::move(sample_ids), std::move(positions)};
}

HeadPlaces head_places(const RowPlaces& rows, std::int64_t heads, std::int64_t width, int parts) {
    const std::int64_t all = rows.sequences * rows.length;
    HETSEQ_ASSERT(all * heads * width < (std::int64_t{1} << 32));
    return {.samples = to_size(rows.sequences),
            .length = to_size(rows.length),
            .heads = to_size(heads),
            .width = to_size(width),
            .rows = to_size(rows.places.defined() ? rows.places.numel() : all),
            .parts = parts,
            .places = numbers_or_null(rows.places),
            .row_of = numbers_or_null(rows.row_of)};
}

// What the scores of an attention lie over. Tensors may be undefined.
struct Scores {
    std::int64_t samples, heads, queries, columns;
    double scale;
    bool is_causal;
    at::Tensor keys;
    Dropout dropout;
    DropoutExtent extent;

    ScorePlaces places() const {
        ScorePlaces places{.rows = to_size(samples * heads * queries),
                           .heads = to_size(heads),
                           .queries = to_size(queries),
                           .columns = to_size(columns),
                           .is_causal = is_causal,
                           .scale = scale,
                           .keys = keys.defined() ? keys.const_data_ptr<bool>() : nullptr};
        set_mask(places, dropout);
        const DropoutLayout layout = padded_layout(heads, queries, columns, extent);
        HETSEQ_ASSERT(fits_dropout_grid(layout));
        places.grid = dropout_grid(layout);
        return places;
    }
};

struct FusedAttention : torch::autograd::Function<FusedAttention> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& queries,
                              const std::optional<at::Tensor>& keys_values,
                              const RowPlaces& query_rows,
                              const RowPlaces& key_rows,
                              const Scores& scores) {
        RECORD_FUNCTION("hetseq::attention", std::vector<c10::IValue>({queries}));
        const bool has_all = !keys_values;
        const std::int64_t width = queries.size(1) / (has_all ? 3 : 1) / scores.heads;
        const HeadPlaces of_queries = head_places(query_rows, scores.heads, width, has_all ? 3 : 1);
        std::vector<at::Tensor> heads = heads_of_rows_cuda(queries.contiguous(), of_queries);
        if (!has_all)
            for (at::Tensor& part : heads_of_rows_cuda(
                     keys_values->contiguous(), head_places(key_rows, scores.heads, width, 2)))
                heads.push_back(std::move(part));
        const at::Tensor products = at::bmm(heads[0], heads[1].transpose(1, 2));
        const Probabilities probabilities = attention_probabilities_cuda(products, scores.places());
        context->save_for_backward({heads[0],
                                    heads[1],
                                    heads[2],
                                    products,
                                    probabilities.dropped,
                                    probabilities.log_sums,
                                    scores.keys,
                                    scores.dropout.sample_ids,
                                    query_rows.places,
                                    query_rows.row_of,
                                    key_rows.places,
                                    key_rows.row_of});
        save_dropout(*context, scores.dropout.p, scores.dropout.key);
        context->saved_data["lengths"] =
            std::vector<std::int64_t>{scores.samples, scores.heads, scores.queries, scores.columns};
        context->saved_data["scale"] = scores.scale;
        context->saved_data["is_causal"] = scores.is_causal;
        context->saved_data["extent"] =
            std::vector<std::int64_t>{scores.extent.rows, scores.extent.columns};
        context->saved_data["has_all"] = has_all;
        HeadPlaces of_context = of_queries;
        of_context.parts = 1;
        return rows_of_heads_cuda({at::bmm(probabilities.dropped, heads[2])}, of_context);
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const auto lengths = context->saved_data["lengths"].toIntVector();
        const auto extent = context->saved_data["extent"].toIntVector();
        const Scores scores{lengths[0],
                            lengths[1],
                            lengths[2],
                            lengths[3],
                            context->saved_data["scale"].toDouble(),
                            context->saved_data["is_causal"].toBool(),
                            saved[6],
                            saved_dropout(*context, saved[7], {}),
                            {extent[0], extent[1]}};
        const RowPlaces query_rows{lengths[0], lengths[2], saved[8], saved[9]};
        const RowPlaces key_rows{lengths[0], lengths[3], saved[10], saved[11]};
        const bool has_all = context->saved_data["has_all"].toBool();
        const std::int64_t width = saved[0].size(2);
        const at::Tensor of_context = heads_of_rows_cuda(
            gradients[0].contiguous(), head_places(query_rows, scores.heads, width, 1))[0];
        const at::Tensor of_values = at::bmm(saved[4].transpose(1, 2), of_context);
        const at::Tensor of_products = attention_probabilities_backward_cuda(
            saved[3],
            saved[5],
            at::bmm(of_context, saved[2].transpose(1, 2)).contiguous(),
            scores.places());
        const at::Tensor of_queries = at::bmm(of_products, saved[1]);
        const at::Tensor of_keys = at::bmm(of_products.transpose(1, 2), saved[0]);
        const auto rows = [&](const std::vector<at::Tensor>& heads, const RowPlaces& places) {
            return rows_of_heads_cuda(
                heads, head_places(places, scores.heads, width, static_cast<int>(heads.size())));
        };
        if (has_all)
            return {rows({of_queries, of_keys, of_values}, query_rows), {}, {}, {}, {}};
        return {rows({of_queries}, query_rows), rows({of_keys, of_values}, key_rows), {}, {}, {}};
    }
};

NormPlaces norm_places(const at::Tensor& x, double eps, const Dropout& dropout) {
    NormPlaces places{.rows = to_size(x.size(0)), .columns = to_size(x.size(1)), .eps = eps};
    set_mask(places, dropout);
    if (dropout.p == 0)
        return places;
    places.positions = numbers_or_null(dropout.positions);
    places.rows_of_sample =
        to_size(x.size(0) / std::max<std::int64_t>(dropout.sample_ids.numel(), 1));
    HETSEQ_ASSERT(fits_token_grid(x.size(0), x.size(1)));
    return places;
}

struct FusedNorm : torch::autograd::Function<FusedNorm> {
    static variable_list forward(AutogradContext* context,
                                 const at::Tensor& x,
                                 const at::Tensor& residual,
                                 const at::Tensor& weight,
                                 const at::Tensor& bias,
                                 double eps,
                                 const Dropout& dropout) {
        RECORD_FUNCTION("hetseq::residual_norm", std::vector<c10::IValue>({x, residual}));
        context->set_materialize_grads(false);
        const ResidualNormed result =
            residual_norm_cuda(x, residual, weight, bias, norm_places(x, eps, dropout));
        context->save_for_backward({result.sums,
                                    result.means,
                                    result.inverse_deviations,
                                    weight,
                                    dropout.sample_ids,
                                    dropout.positions});
        save_dropout(*context, dropout.p, dropout.key);
        context->saved_data["eps"] = eps;
        context->saved_data["type"] = static_cast<std::int64_t>(x.scalar_type());
        if (result.narrow.defined())
            return {result.wide, result.narrow};
        return {result.wide};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const ResidualNormed kept{{}, {}, saved[0], saved[1], saved[2]};
        const auto contiguous = [&](std::size_t i) {
            return i < gradients.size() && gradients[i].defined() ? gradients[i].contiguous()
                                                                  : at::Tensor{};
        };
        const at::Tensor of_wide = contiguous(0), of_narrow = contiguous(1);
        if (!of_wide.defined() && !of_narrow.defined())
            return {{}, {}, {}, {}, {}, {}};
        const ResidualNormGradients result = residual_norm_backward_cuda(
            kept,
            of_wide,
            of_narrow,
            saved[3],
            static_cast<at::ScalarType>(context->saved_data["type"].toInt()),
            norm_places(saved[0],
                        context->saved_data["eps"].toDouble(),
                        saved_dropout(*context, saved[4], saved[5])));
        return {result.x, result.residual, result.weight, result.bias, {}, {}};
    }
};

// The product of 16 bits in fp32, which LibTorch gives without rounding since 2.8.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 8
    return at::mm(a, b, at::kFloat);
#else
    return at::mm(a, b).to(at::kFloat);
#endif
}

struct NarrowLinear : torch::autograd::Function<NarrowLinear> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& x,
                              const at::Tensor& weight,
                              const at::Tensor& bias) {
        const at::Tensor factors = narrow_parameter(weight);
        context->save_for_backward({x, factors});
        return at::addmm(narrow_parameter(bias), x, factors.t());
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor gradient = gradients[0].contiguous();
        const auto where_needed = [&](std::size_t input, const auto& compute) {
            return context->needs_input_grad(input) ? compute() : at::Tensor{};
        };
        return {where_needed(0, [&] { return at::mm(gradient, saved[1]); }),
                where_needed(1, [&] { return wide_product(gradient.t(), saved[0]); }),
                where_needed(2, [&] { return gradient.sum({0}, false, at::kFloat); })};
    }
};

}  // namespace

at::Tensor fused_attention(const at::Tensor& queries,
                           const at::Tensor& keys_values,
                           const RowPlaces& query_rows,
                           const RowPlaces& key_rows,
                           std::int64_t heads,
                           const AttentionMask& mask,
                           const Dropout& dropout,
                           const DropoutExtent& extent) {
    const std::int64_t hidden = queries.size(1) / (keys_values.defined() ? 1 : 3);
    return FusedAttention::apply(
        queries,
        keys_values.defined() ? std::make_optional(keys_values) : std::nullopt,
        query_rows,
        key_rows,
        Scores{query_rows.sequences,
               heads,
               query_rows.length,
               key_rows.length,
               1 / std::sqrt(static_cast<double>(hidden / heads)),
               mask.is_causal,
               mask.keys.defined() ? mask.keys.to(at::kBool).contiguous() : at::Tensor{},
               dropout,
               extent});
}

Rows fused_dropout_add_norm(const at::Tensor& x,
                            const at::Tensor& residual,
                            const Affine& norm,
                            double eps,
                            const Dropout& dropout) {
    const auto flat = [](const at::Tensor& y) { return y.flatten(0, -2).contiguous(); };
    const auto shaped = [&](const at::Tensor& y) { return y.view(x.sizes()); };
    const variable_list result =
        FusedNorm::apply(flat(x), flat(residual), norm.weight, norm.bias, eps, dropout);
    return {shaped(result.front()), shaped(result.back())};
}

at::Tensor narrow_linear(const at::Tensor& x, const Affine& affine) {
    const at::Tensor product =
        NarrowLinear::apply(x.flatten(0, -2).contiguous(), affine.weight, affine.bias);
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes.back() = product.size(1);
    return product.view(sizes);
}

}  // namespace hetseq::detail
