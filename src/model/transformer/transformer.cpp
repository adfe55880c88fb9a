#include "hetseq/model/transformer/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/autocast.hpp"

#include "model/fused_ops.hpp"
#include "model/recomputed_layer.hpp"
#include "model/smoothed_cross_entropy.hpp"
#include "model/transformer_ops.hpp"
#include "transformer_chain.hpp"
#include "transformer_weights.hpp"

namespace hetseq {

namespace {

using detail::Affine;
using detail::AttentionMask;
using detail::ForwardPass;
using detail::FusedParameter;
using detail::Rows;

bool has_end(const std::string& text, const std::string& end) {
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
}

class EncoderDecoder final : public Transformer {
public:
    EncoderDecoder(const TransformerConfig& config, TransformerSetup setup)
        : config_{config}, setup_{std::move(setup)}, chain_{config} {
        check(config, "the Transformer to be made");
        if (!(setup_.label_smoothing >= 0 && setup_.label_smoothing < 1))
            throw BadConfig("label smoothing is " + std::to_string(setup_.label_smoothing),
                            "it must lie in [0, 1)",
                            "give another --label-smoothing");
        weights_ = detail::register_transformer(*this, config_);
    }

    const TransformerConfig& config() const override { return config_; }
    const detail::TransformerWeights& weights() const override { return weights_; }

    std::vector<std::string> loss_terms() const override { return {"loss"}; }
    std::vector<MetricSchema> metrics() const override {
        return {{.name = "nll", .term = 0, .is_share = false}, {.name = "accuracy", .term = 0}};
    }
    std::vector<PerplexitySchema> perplexities() const override { return {{"perplexity", "nll"}}; }
    std::vector<std::string> scores() const override { return setup_.scores; }
    std::unique_ptr<CorpusScorer> corpus_scorer() const override {
        return setup_.make_scorer ? setup_.make_scorer(*this) : nullptr;
    }
    std::vector<NamedTensor> stored_tensors() const override;
    std::map<std::string, std::string> tensor_aliases() const override;
    InitialDistribution initial_distribution(const std::string& name) const override;
    std::string config_json() const override { return to_json(config_); }
    std::vector<CompanionFile> companion_files() const override;
    std::vector<ChainUnit> chain() const override { return chain_.units(*this); }
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        return run_units({0, chain_.size()}, {}, batch, context).result;
    }
    Carried run_units(UnitRange units,
                      const Carried& carried,
                      const MicroBatch& batch,
                      const ForwardContext& context) override;

private:
    /// What goes from unit to unit.
    struct Stream {
        Rows x;               // the encoder's or the decoder's, (n, S, H) or (n, T, H)
        at::Tensor memory{};  // (n, S, H), factors of products; undefined in the encoder
    };

    /// Any unit but the output. `key_mask` (n, S).
    void advance(Stream& stream,
                 std::size_t unit,
                 const at::Tensor& key_mask,
                 ForwardPass& pass) const;
    ForwardResult result(const at::Tensor& x, const ForwardPass& pass) const;  // x (n, T, H)
    /// `layer` of inputs, which is that of this unit; backward may compute it again.
    Rows run(std::size_t unit,
             const std::vector<Rows>& inputs,
             ForwardPass& pass,
             const detail::LayerComputation& layer) const;
    Rows embed(const at::Tensor& ids,
               const at::Tensor& table,
               const at::Tensor& positions,
               ForwardPass& pass) const;  // (n, length, H)
    Rows encode(std::size_t unit,
                const Rows& x,
                const at::Tensor& key_mask,
                ForwardPass& pass) const;
    Rows decode(std::size_t unit,
                const Stream& given,
                const at::Tensor& key_mask,
                ForwardPass& pass) const;
    at::Tensor attend(const detail::Projection& queries,
                      const detail::Projection& keys_values,
                      const AttentionMask& mask,
                      ForwardPass& pass) const;  // (n, T, H)
    Rows self_attend(const Rows& x,
                     const detail::SelfAttentionWeights& weights,
                     const AttentionMask& mask,
                     ForwardPass& pass) const;
    Rows cross_attend(const Rows& x,
                      const at::Tensor& memory,
                      const detail::CrossAttentionWeights& weights,
                      const AttentionMask& mask,
                      ForwardPass& pass) const;
    Rows feed_forward(const Rows& x,
                      const detail::FeedForwardWeights& weights,
                      ForwardPass& pass) const;
    /// Residual, dropout and normalisation around a part of a layer: `part` makes of the factors of
    /// a product, (n, T, H), what goes into the linear layer `output`.
    template <class Part>
    Rows around(const Rows& x,
                const Affine& norm,
                const Affine& output,
                ForwardPass& pass,
                const Part& part) const;
    at::Tensor normalised(const at::Tensor& x, const Affine& norm) const;

    TransformerConfig config_;
    TransformerSetup setup_;
    detail::TransformerChain chain_;
    detail::TransformerWeights weights_;
};

std::vector<NamedTensor> EncoderDecoder::stored_tensors() const {
    std::vector<NamedTensor> tensors;
    const auto computed = named_buffers();  // sinusoids
    for (const NamedTensor& parameter : Model::stored_tensors()) {
        if (computed.contains(parameter.name))
            continue;
        const FusedParameter* fused = nullptr;
        for (const FusedParameter& one : detail::fused_parameters())
            if (parameter.name.find(one.suffix) != std::string::npos)
                fused = &one;
        if (fused == nullptr) {
            tensors.push_back(parameter);
            continue;
        }
        const std::size_t at = parameter.name.find(fused->suffix);
        for (std::size_t i = 0; i < fused->parts.size(); ++i) {
            std::string name = parameter.name;
            name.replace(at, fused->suffix.size(), fused->parts[i]);
            tensors.push_back(
                {name,
                 parameter.tensor.detach().narrow(
                     0, static_cast<std::int64_t>(i) * config_.width, config_.width)});
        }
    }
    return tensors;
}

// fairseq writes shared tables under each of their names.
std::map<std::string, std::string> EncoderDecoder::tensor_aliases() const {
    using Shared = TransformerConfig::SharedEmbeddings;
    const std::string source = "encoder.embed_tokens.weight";
    const std::string target = "decoder.embed_tokens.weight";
    const std::string output = "decoder.output_projection.weight";
    if (config_.shared_embeddings == Shared::all)
        return {{target, source}, {output, source}};
    if (config_.shared_embeddings == Shared::decoder)
        return {{output, target}};
    return {};
}

std::vector<CompanionFile> EncoderDecoder::companion_files() const {
    std::vector<CompanionFile> files = Model::companion_files();
    files.insert(files.end(), setup_.vocabularies.begin(), setup_.vocabularies.end());
    return files;
}

// As fairseq's: tables N(0, 1 / H), matrices by Glorot and Bengio 2010, queries, keys and values
// with a gain of 1 / sqrt(2).
InitialDistribution EncoderDecoder::initial_distribution(const std::string& name) const {
    using Kind = InitialDistribution::Kind;
    const auto width = static_cast<double>(config_.width);
    if (has_end(name, "bias"))
        return {Kind::constant, 0};
    if (name.find("layer_norm") != std::string::npos)
        return {Kind::constant, 1};
    if (name.find("embed_") != std::string::npos ||
        name.find("output_projection") != std::string::npos)
        return {Kind::normal, 1 / std::sqrt(width)};
    if (name.find("fc1") != std::string::npos || name.find("fc2") != std::string::npos)
        return {Kind::uniform, std::sqrt(6 / (width + static_cast<double>(config_.inner_width)))};
    const double gain = name.find("out_proj") != std::string::npos ? 1 : 1 / std::sqrt(2.0);
    return {Kind::uniform, gain * std::sqrt(3 / width)};
}

at::Tensor EncoderDecoder::normalised(const at::Tensor& x, const Affine& norm) const {
    return at::layer_norm(
        x, norm.weight.sizes(), norm.weight, norm.bias, detail::TransformerWeights::norm_eps);
}

template <class Part>
Rows EncoderDecoder::around(const Rows& x,
                            const Affine& norm,
                            const Affine& output,
                            ForwardPass& pass,
                            const Part& part) const {
    const at::Tensor y = part(config_.pre_norm ? normalised(x.wide, norm) : x.factors);
    const detail::Dropout dropout = pass.next_dropout(config_.dropout);
    if (!config_.pre_norm)
        return detail::linear_dropout_add_norm(
            y, output, x.wide, norm, detail::TransformerWeights::norm_eps, dropout);
    const at::Tensor sum = x.wide + detail::dropped(detail::linear(y, output), dropout);
    return {sum, sum};  // normalised before it is a factor
}

Rows EncoderDecoder::embed(const at::Tensor& ids,
                           const at::Tensor& table,
                           const at::Tensor& positions,
                           ForwardPass& pass) const {
    HETSEQ_ASSERT(ids.size(1) <= config_.max_positions);
    const double scale = std::sqrt(static_cast<double>(config_.width));
    const detail::Dropout dropout = pass.next_dropout(config_.dropout);
    if (ids.is_cuda())
        return detail::fused_embedding({.words = table,
                                        .ids = ids,
                                        .scale = scale,
                                        .positions = positions,
                                        .length = ids.size(1)},
                                       dropout,
                                       product_type(table));
    const at::Tensor sum = at::embedding(table, ids) * scale + positions.narrow(0, 0, ids.size(1));
    return detail::rows_of(detail::dropped(sum, dropout));
}

at::Tensor EncoderDecoder::attend(const detail::Projection& queries,
                                  const detail::Projection& keys_values,
                                  const AttentionMask& mask,
                                  ForwardPass& pass) const {
    return detail::projected_attention(queries,
                                       keys_values,
                                       config_.heads,
                                       mask,
                                       pass.next_dropout(config_.attention_dropout),
                                       {config_.max_positions, config_.max_positions});
}

Rows EncoderDecoder::self_attend(const Rows& x,
                                 const detail::SelfAttentionWeights& weights,
                                 const AttentionMask& mask,
                                 ForwardPass& pass) const {
    return around(x, weights.norm, weights.output, pass, [&](const at::Tensor& in) {
        return attend({in, weights.qkv}, {}, mask, pass);
    });
}

Rows EncoderDecoder::cross_attend(const Rows& x,
                                  const at::Tensor& memory,
                                  const detail::CrossAttentionWeights& weights,
                                  const AttentionMask& mask,
                                  ForwardPass& pass) const {
    return around(x, weights.norm, weights.output, pass, [&](const at::Tensor& in) {
        return attend({in, weights.query}, {memory, weights.key_value}, mask, pass);
    });
}

Rows EncoderDecoder::feed_forward(const Rows& x,
                                  const detail::FeedForwardWeights& weights,
                                  ForwardPass& pass) const {
    return around(x, weights.norm, weights.output, pass, [&](const at::Tensor& in) {
        const at::Tensor active = detail::linear_activation(
            in,
            weights.inner,
            config_.activation == TransformerConfig::Activation::relu ? detail::Activation::relu
                                                                      : detail::Activation::gelu);
        return detail::dropped(active, pass.next_dropout(config_.activation_dropout));
    });
}

Rows EncoderDecoder::run(std::size_t unit,
                         const std::vector<Rows>& inputs,
                         ForwardPass& pass,
                         const detail::LayerComputation& layer) const {
    constexpr bool trains = true;  // no layer is frozen
    const bool again = pass.context.mode == Mode::train && is_recomputed(unit);
    return detail::run_layer(pass, inputs, again, trains, layer);
}

Rows EncoderDecoder::encode(std::size_t unit,
                            const Rows& x,
                            const at::Tensor& key_mask,
                            ForwardPass& pass) const {
    const detail::EncoderLayerWeights& layer =
        weights_.encoder[unit - detail::TransformerChain::first_encoder_layer];
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
    const detail::DecoderLayerWeights& layer =
        weights_.decoder[unit - chain_.first_decoder_layer()];
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
        const Rows encoded =
            weights_.encoder_norm
                ? detail::rows_of(normalised(stream.x.wide, *weights_.encoder_norm))
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
        stream.x = detail::rows_of(carried.tensors.front());
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
    const detail::SmoothedCrossEntropy sums = detail::smoothed_cross_entropy(rows,
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

}  // namespace

std::shared_ptr<Transformer> make_transformer(const TransformerConfig& config,
                                              TransformerSetup setup) {
    return std::make_shared<EncoderDecoder>(config, std::move(setup));
}

}  // namespace hetseq
