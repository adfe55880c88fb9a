#include "encoder_decoder.hpp"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/autocast.hpp"

#include "model/fused_ops.hpp"
#include "model/smoothed_cross_entropy.hpp"

namespace hetseq::detail {

at::Tensor EncoderDecoder::normalised(const at::Tensor& x, const Affine& norm) const {
    return at::layer_norm(
        x, norm.weight.sizes(), norm.weight, norm.bias, TransformerWeights::norm_eps);
}

template <class Part>
Rows EncoderDecoder::around(const Rows& x,
                            const Affine& norm,
                            const Affine& output,
                            ForwardPass& pass,
                            const Part& part) const {
    const at::Tensor y = part(config_.pre_norm ? normalised(x.wide, norm) : x.factors);
    const Dropout dropout = pass.next_dropout(config_.dropout);
    if (!config_.pre_norm)
        return linear_dropout_add_norm(
            y, output, x.wide, norm, TransformerWeights::norm_eps, dropout);
    const at::Tensor sum = x.wide + dropped(linear(y, output), dropout);
    return {sum, sum};  // normalised before it is a factor
}

Rows EncoderDecoder::embed(const at::Tensor& ids,
                           const at::Tensor& table,
                           const at::Tensor& positions,
                           ForwardPass& pass) const {
    HETSEQ_ASSERT(ids.size(1) <= config_.max_positions);
    const double scale = std::sqrt(static_cast<double>(config_.width));
    const Dropout dropout = pass.next_dropout(config_.dropout);
    if (ids.is_cuda())
        return fused_embedding({.words = table,
                                .ids = ids,
                                .scale = scale,
                                .positions = positions,
                                .length = ids.size(1)},
                               dropout,
                               product_type(table));
    const at::Tensor sum = at::embedding(table, ids) * scale + positions.narrow(0, 0, ids.size(1));
    return rows_of(dropped(sum, dropout));
}

at::Tensor EncoderDecoder::attend(const Projection& queries,
                                  const Projection& keys_values,
                                  const AttentionMask& mask,
                                  ForwardPass& pass) const {
    return projected_attention(queries,
                               keys_values,
                               config_.heads,
                               mask,
                               pass.next_dropout(config_.attention_dropout),
                               {config_.max_positions, config_.max_positions});
}

Rows EncoderDecoder::self_attend(const Rows& x,
                                 const SelfAttentionWeights& weights,
                                 const AttentionMask& mask,
                                 ForwardPass& pass) const {
    return around(x, weights.norm, weights.output, pass, [&](const at::Tensor& in) {
        return attend({in, weights.qkv}, {}, mask, pass);
    });
}

Rows EncoderDecoder::cross_attend(const Rows& x,
                                  const at::Tensor& memory,
                                  const CrossAttentionWeights& weights,
                                  const AttentionMask& mask,
                                  ForwardPass& pass) const {
    return around(x, weights.norm, weights.output, pass, [&](const at::Tensor& in) {
        return attend({in, weights.query}, {memory, weights.key_value}, mask, pass);
    });
}

Rows EncoderDecoder::feed_forward(const Rows& x,
                                  const FeedForwardWeights& weights,
                                  ForwardPass& pass) const {
    return around(x, weights.norm, weights.output, pass, [&](const at::Tensor& in) {
        const at::Tensor active = linear_activation(
            in,
            weights.inner,
            config_.activation == TransformerConfig::Activation::relu ? Activation::relu
                                                                      : Activation::gelu);
        return dropped(active, pass.next_dropout(config_.activation_dropout));
    });
}

Rows EncoderDecoder::run(std::size_t unit,
                         const std::vector<Rows>& inputs,
                         ForwardPass& pass,
                         const LayerComputation& layer) const {
    constexpr bool trains = true;  // no layer is frozen
    const bool again = pass.context.mode == Mode::train && is_recomputed(unit);
    return run_layer(pass, inputs, again, trains, layer);
}

Rows EncoderDecoder::encode(std::size_t unit,
                            const Rows& x,
                            const at::Tensor& key_mask,
                            ForwardPass& pass) const {
    const EncoderLayerWeights& layer =
        weights_.encoder[unit - TransformerChain::first_encoder_layer];
    return run(unit, {x}, pass, [this, &layer, key_mask](const auto& inputs, ForwardPass& of) {
        return feed_forward(
            self_attend(inputs[0], layer.self, {key_mask}, of), layer.feed_forward, of);
    });
}

// Padding stands behind a target's tokens, so that no token sees it.
Rows EncoderDecoder::decode(std::size_t unit,
                            const Stream& given,
                            const at::Tensor& key_mask,
                            ForwardPass& pass) const {
    const DecoderLayerWeights& layer = weights_.decoder[unit - chain_.first_decoder_layer()];
    return run(unit,
               {given.x, {given.memory, given.memory}},
               pass,
               [this, &layer, key_mask](const auto& inputs, ForwardPass& of) {
                   Rows y = self_attend(inputs[0], layer.self, {.keys = {}, .is_causal = true}, of);
                   y = cross_attend(y, inputs[1].factors, layer.cross, {key_mask}, of);
                   return feed_forward(y, layer.feed_forward, of);
               });
}

void EncoderDecoder::advance(Stream& stream,
                             std::size_t unit,
                             const at::Tensor& key_mask,
                             ForwardPass& pass) const {
    HETSEQ_ASSERT(pass.dropouts == chain_.first_dropout(unit));
    const TensorDict& given = pass.batch.tensors;
    if (unit == 0) {
        stream.x =
            embed(given.at("source"), weights_.source_table, weights_.source_positions, pass);
    } else if (unit < chain_.decoder_embeddings()) {
        stream.x = encode(unit, stream.x, key_mask, pass);
    } else if (unit == chain_.decoder_embeddings()) {
        const Rows encoded = weights_.encoder_norm
                                 ? rows_of(normalised(stream.x.wide, *weights_.encoder_norm))
                                 : stream.x;
        stream.memory = encoded.factors;
        stream.x =
            embed(given.at("target_input"), weights_.target_table, weights_.target_positions, pass);
    } else {
        stream.x = decode(unit, stream, key_mask, pass);
    }
}

Carried EncoderDecoder::run_units(UnitRange units,
                                  const Carried& carried,
                                  const MicroBatch& batch,
                                  const ForwardContext& context) {
    HETSEQ_ASSERT(!units.empty() && units.end <= chain_.size());
    ForwardPass pass{batch, context, chain_.first_dropout(units.begin)};
    const std::int64_t length = batch.tensors.at("source").size(1);
    const at::Tensor lengths = batch.tensors.at("source_lengths");
    const at::Tensor key_mask =
        at::arange(length, lengths.options()).unsqueeze(0) < lengths.unsqueeze(1);  // (n, S)
    Stream stream;
    if (units.begin > 0)
        stream.x = rows_of(carried.tensors.front());
    if (carried.tensors.size() > 1)
        stream.memory = carried.tensors.back();
    for (std::size_t unit = units.begin; unit < std::min(units.end, chain_.output()); ++unit)
        advance(stream, unit, key_mask, pass);
    if (units.contains(chain_.output()))
        return {.tensors = {}, .result = result(stream.x.wide, pass)};
    Carried next{.tensors = {stream.x.wide}, .result = {}};
    if (stream.memory.defined() && units.end < chain_.output())
        next.tensors.push_back(stream.memory);
    return next;
}

ForwardResult EncoderDecoder::result(const at::Tensor& x, const ForwardPass& pass) const {
    const TensorDict& given = pass.batch.tensors;
    const at::Tensor rows = (weights_.decoder_norm ? normalised(x, *weights_.decoder_norm) : x)
                                .flatten(0, 1)
                                .index_select(0, given.at("positions"));  // (N, H)
    const SmoothedCrossEntropy sums = smoothed_cross_entropy(rows,
                                                             weights_.output_table,
                                                             given.at("labels"),
                                                             setup_.label_smoothing,
                                                             pass.count_correct());
    ForwardResult result;
    result.losses = {sums.loss};
    if (pass.context.mode == Mode::evaluate)
        result.metrics = {sums.nll, sums.correct};
    return result;
}

}  // namespace hetseq::detail
