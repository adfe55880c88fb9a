#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/bmm.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hetseq/util/error.hpp"

#include "model/fused_ops.hpp"
#include "model/kernels/fused/fused_kernels.hpp"
#include "token_places.hpp"

namespace hetseq::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

// Those of rows and, where they have one, of their bias.
RowsAndSums gradients_of_rows(const std::vector<at::Tensor>& heads,
                              const HeadPlaces& at,
                              bool has_bias) {
    if (has_bias)
        return rows_of_heads_and_sums_cuda(heads, at);
    return {rows_of_heads_cuda(heads, at), {}};
}

struct FusedAttention : torch::autograd::Function<FusedAttention> {
    static at::Tensor forward(AutogradContext* context,
                              const at::Tensor& queries,
                              const std::optional<at::Tensor>& keys_values,
                              const std::optional<at::Tensor>& queries_bias,
                              const std::optional<at::Tensor>& keys_values_bias,
                              const RowPlaces& query_rows,
                              const RowPlaces& key_rows,
                              const Scores& scores) {
        RECORD_FUNCTION("hetseq::attention", std::vector<c10::IValue>({queries}));
        const bool has_all = !keys_values;
        const std::int64_t width = queries.size(1) / (has_all ? 3 : 1) / scores.heads;
        const HeadPlaces of_queries = head_places(query_rows, scores.heads, width, has_all ? 3 : 1);
        std::vector<at::Tensor> heads = heads_of_rows_cuda(
            queries.contiguous(), queries_bias.value_or(at::Tensor{}), of_queries);
        if (!has_all)
            for (at::Tensor& part :
                 heads_of_rows_cuda(keys_values->contiguous(),
                                    keys_values_bias.value_or(at::Tensor{}),
                                    head_places(key_rows, scores.heads, width, 2)))
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
        context->saved_data["has_queries_bias"] = queries_bias.has_value();
        context->saved_data["has_keys_values_bias"] = keys_values_bias.has_value();
        HeadPlaces of_context = of_queries;
        of_context.parts = 1;
        return rows_of_heads_cuda({at::bmm(probabilities.dropped, heads[2])}, of_context);
    }

    static Scores saved_scores(AutogradContext* context, const variable_list& saved) {
        const auto lengths = context->saved_data["lengths"].toIntVector();
        const auto extent = context->saved_data["extent"].toIntVector();
        return {lengths[0],
                lengths[1],
                lengths[2],
                lengths[3],
                context->saved_data["scale"].toDouble(),
                context->saved_data["is_causal"].toBool(),
                saved[6],
                saved_dropout(*context, saved[7], {}),
                {extent[0], extent[1]}};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const variable_list saved = context->get_saved_variables();
        const Scores scores = saved_scores(context, saved);
        const RowPlaces query_rows{scores.samples, scores.queries, saved[8], saved[9]};
        const RowPlaces key_rows{scores.samples, scores.columns, saved[10], saved[11]};
        const bool has_all = context->saved_data["has_all"].toBool();
        const std::int64_t width = saved[0].size(2);
        const at::Tensor of_context = heads_of_rows_cuda(
            gradients[0].contiguous(), {}, head_places(query_rows, scores.heads, width, 1))[0];
        const at::Tensor of_values = at::bmm(saved[4].transpose(1, 2), of_context);
        const at::Tensor of_products = attention_probabilities_backward_cuda(
            saved[3],
            saved[5],
            at::bmm(of_context, saved[2].transpose(1, 2)).contiguous(),
            scores.places());
        const at::Tensor of_queries = at::bmm(of_products, saved[1]);
        const at::Tensor of_keys = at::bmm(of_products.transpose(1, 2), saved[0]);
        const auto rows = [&](const std::vector<at::Tensor>& heads,
                              const RowPlaces& places,
                              const char* has_bias) {
            return gradients_of_rows(
                heads,
                head_places(places, scores.heads, width, static_cast<int>(heads.size())),
                context->saved_data[has_bias].toBool());
        };
        if (has_all) {
            const RowsAndSums of_all =
                rows({of_queries, of_keys, of_values}, query_rows, "has_queries_bias");
            return {of_all.rows, {}, of_all.sums, {}, {}, {}, {}};
        }
        const RowsAndSums of_one = rows({of_queries}, query_rows, "has_queries_bias");
        const RowsAndSums of_two = rows({of_keys, of_values}, key_rows, "has_keys_values_bias");
        return {of_one.rows, of_two.rows, of_one.sums, of_two.sums, {}, {}, {}};
    }
};

}  // namespace

at::Tensor fused_attention(const Projected& queries,
                           const Projected& keys_values,
                           const RowPlaces& query_rows,
                           const RowPlaces& key_rows,
                           std::int64_t heads,
                           const AttentionMask& mask,
                           const Dropout& dropout,
                           const DropoutExtent& extent) {
    const std::int64_t hidden = queries.rows.size(1) / (keys_values.rows.defined() ? 1 : 3);
    return FusedAttention::apply(
        queries.rows,
        if_defined(keys_values.rows),
        if_defined(queries.bias),
        if_defined(keys_values.bias),
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

}  // namespace hetseq::detail
