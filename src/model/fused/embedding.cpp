#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/fused_ops.hpp"
#include "model/kernels/fused/fused_kernels.hpp"
#include "token_places.hpp"

namespace hetseq::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Of a table of `like`'s sizes whose first rows were added to each sequence.
at::Tensor gradient_of_first_rows(const at::Tensor& of_rows,
                                  std::int64_t length,
                                  std::int64_t all) {
    at::Tensor gradient = at::zeros({all, of_rows.size(1)}, of_rows.options());
    at::Tensor first = gradient.narrow(0, 0, length);
    at::sum_out(first, of_rows.view({-1, length, of_rows.size(1)}), {0});
    return gradient;
}

struct FusedEmbedding : torch::autograd::Function<FusedEmbedding> {
    static variable_list forward(AutogradContext* context,
                                 const at::Tensor& words,
                                 const at::Tensor& positions,
                                 const std::optional<at::Tensor>& segments,
                                 const EmbeddingTensors& tables,
                                 const std::int64_t padding_id,
                                 const at::ScalarType type,
                                 const Dropout& dropout) {
        RECORD_FUNCTION("hetseq::embedding", std::vector<c10::IValue>({tables.ids}));
        context->set_materialize_grads(false);
        const EmbeddingSums sums = embedding_sum_cuda(
            tables, type, token_places({tables.ids.numel(), words.size(1)}, dropout));
        context->save_for_backward({tables.ids,
                                    tables.position_ids,
                                    tables.segment_ids,
                                    dropout.sample_ids,
                                    dropout.positions});
        save_dropout(*context, dropout.p, dropout.key);
        context->saved_data["rows"] = std::vector<std::int64_t>{
            words.size(0), positions.size(0), segments ? segments->size(0) : 0};
        context->saved_data["padding_id"] = padding_id;
        context->saved_data["length"] = tables.length;
        context->saved_data["scale"] = tables.scale;
        context->saved_data["type"] = static_cast<std::int64_t>(type);
        return {sums.wide, sums.narrow.defined() ? sums.narrow : same_memory(sums.wide)};
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        variable_list result(7);
        const at::Tensor of_rows = gradient_of_rows(*context, gradients);
        if (!of_rows.defined())
            return result;
        const variable_list saved = context->get_saved_variables();
        const auto rows = context->saved_data["rows"].toIntVector();
        if (context->needs_input_grad(0))
            result[0] = at::embedding_dense_backward(
                of_rows, saved[0], rows[0], context->saved_data["padding_id"].toInt(), false);
        if (context->needs_input_grad(1))
            result[1] = gradient_of_positions(*context, of_rows, saved[1], rows[1]);
        if (saved[2].defined() && context->needs_input_grad(2))
            result[2] = at::embedding_dense_backward(of_rows, saved[2], rows[2], -1, false);
        return result;
    }

    // Of the words' rows, scaled; undefined where there is none.
    static at::Tensor gradient_of_rows(AutogradContext& context, const variable_list& gradients) {
        const at::Tensor of_wide = gradient_or_none(gradients, 0),
                         of_narrow = gradient_or_none(gradients, 1);
        const variable_list saved = context.get_saved_variables();
        const Dropout dropout = saved_dropout(context, saved[3], saved[4]);
        const double scale = context.saved_data["scale"].toDouble();
        if (!of_narrow.defined() && (!of_wide.defined() || (dropout.p == 0 && scale == 1)))
            return of_wide;
        return outputs_backward_cuda(
            of_wide,
            of_narrow,
            scale,
            static_cast<at::ScalarType>(context.saved_data["type"].toInt()),
            token_places((of_wide.defined() ? of_wide : of_narrow).sizes(), dropout));
    }

    // Positions are added unscaled.
    static at::Tensor gradient_of_positions(AutogradContext& context,
                                            const at::Tensor& of_rows,
                                            const at::Tensor& ids,
                                            std::int64_t all) {
        const double scale = context.saved_data["scale"].toDouble();
        at::Tensor gradient =
            ids.defined()
                ? at::embedding_dense_backward(of_rows, ids, all, -1, false)
                : gradient_of_first_rows(of_rows, context.saved_data["length"].toInt(), all);
        return scale == 1 ? gradient : gradient.div_(scale);
    }
};

}  // namespace

Rows fused_embedding(const Embedding& embedding, const Dropout& dropout, at::ScalarType type) {
    const auto flat = [](const at::Tensor& ids) {
        return ids.defined() ? ids.flatten().contiguous() : ids;
    };
    const EmbeddingTensors tables{embedding.words,
                                  flat(embedding.ids),
                                  embedding.scale,
                                  embedding.positions,
                                  flat(embedding.position_ids),
                                  embedding.length,
                                  embedding.segments,
                                  flat(embedding.segment_ids)};
    const variable_list sums = FusedEmbedding::apply(embedding.words,
                                                     embedding.positions,
                                                     if_defined(embedding.segments),
                                                     tables,
                                                     embedding.padding_id,
                                                     type,
                                                     dropout);
    std::vector<std::int64_t> sizes = embedding.ids.sizes().vec();
    sizes.push_back(embedding.words.size(1));
    return {sums[0].view(sizes), sums[1].view(sizes)};
}

}  // namespace hetseq::detail
