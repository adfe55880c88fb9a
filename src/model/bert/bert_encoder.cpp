#include "bert_encoder.hpp"

#include <algorithm>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sort.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/autocast.hpp"

#include "model/fused_ops.hpp"
#include "model/sequence_attention.hpp"

namespace hetseq::detail {

namespace {

const std::string fused_suffix = "self.qkv.";
const std::string body_prefix = "bert.";
const std::string norm_name = "LayerNorm.";
const std::string parts_of_qkv[] = {"self.query.", "self.key.", "self.value."};

Activation activation_of(BertConfig::Activation activation) {
    switch (activation) {
        case BertConfig::Activation::gelu:
            return Activation::gelu;
        case BertConfig::Activation::gelu_tanh:
            return Activation::gelu_tanh;
        case BertConfig::Activation::relu:
            return Activation::relu;
        case BertConfig::Activation::silu:
            return Activation::silu;
    }
    HETSEQ_ASSERT(false);
}

// On a CPU, where no row is padding. Elsewhere a kernel for each sequence would cost more than
// padding.
bool attends_by_sequence(const at::Tensor& x, const TokenRows& rows) {
    return x.is_cpu() && !rows.begins().empty();
}

// Of the layer `qkv` of x, (N, 3H). Returns (N, H).
at::Tensor attend(const at::Tensor& x,
                  const Affine& layer,
                  const TokenRows& rows,
                  std::int64_t heads,
                  const Dropout& dropout,
                  const DropoutExtent& extent) {
    if (x.is_cuda())
        return fused_attention({linear(x, {layer.weight, {}}), layer.bias},
                               {},
                               rows.row_places(),
                               rows.row_places(),
                               heads,
                               {rows.key_mask()},
                               dropout,
                               extent);
    const at::Tensor qkv = linear(x, layer);
    if (attends_by_sequence(qkv, rows))
        return sequence_attention(
            qkv, {}, {rows.begins(), rows.begins(), {}}, heads, dropout, extent);
    return rows.packed(self_attention(rows.padded(qkv), rows.key_mask(), heads, dropout, extent));
}

// The queries are those at `places` (M) alone, ascending. Returns (M, H).
at::Tensor attend_from(const at::Tensor& places,
                       const at::Tensor& at_places,
                       const at::Tensor& x,
                       const TokenRows& rows,
                       const Affine& qkv,
                       std::int64_t heads,
                       const Dropout& dropout,
                       const DropoutExtent& extent) {
    const std::int64_t hidden = x.size(1);
    const std::vector<at::Tensor> weights = qkv.weight.split_with_sizes({hidden, 2 * hidden});
    const std::vector<at::Tensor> biases = qkv.bias.split_with_sizes({hidden, 2 * hidden});
    AttentionSpans spans{rows.begins(), {}, places.remainder(rows.width())};
    const auto* begin = places.const_data_ptr<std::int64_t>();
    for (std::int64_t s = 0; s <= rows.sequences(); ++s)
        spans.queries.push_back(std::lower_bound(begin, begin + places.numel(), s * rows.width()) -
                                begin);
    return sequence_attention(at::linear(at_places, weights[0], biases[0]),
                              at::linear(x, weights[1], biases[1]),
                              spans,
                              heads,
                              dropout,
                              extent);
}

}  // namespace

BertEncoder::BertEncoder(const BertConfig& config,
                         BertPooler pooler,
                         std::vector<CompanionFile> text_files)
    : config_{config}, text_files_{std::move(text_files)} {
    check(config, "the BERT to be made");
    register_embeddings();
    for (std::int64_t i = 0; i < config.layers; ++i)
        register_layer("bert.encoder.layer." + std::to_string(i) + ".");
    if (pooler == BertPooler::with)
        pooler_ = add_linear("bert.pooler.dense.", config.hidden_size, config.hidden_size);
}

Affine BertEncoder::add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    const at::Tensor weight = register_parameter(name + "weight", at::empty({outputs, inputs}));
    return {weight, register_parameter(name + "bias", at::empty({outputs}))};
}

Affine BertEncoder::add_norm(const std::string& name) {
    const at::Tensor weight = register_parameter(name + "weight", at::empty({config_.hidden_size}));
    return {weight, register_parameter(name + "bias", at::empty({config_.hidden_size}))};
}

void BertEncoder::register_embeddings() {
    const auto table = [&](const std::string& name, std::int64_t rows) {
        return register_parameter("bert.embeddings." + name + "_embeddings.weight",
                                  at::empty({rows, config_.hidden_size}));
    };
    embeddings_.word = table("word", config_.vocab_size);
    embeddings_.position = table("position", config_.max_position_embeddings);
    embeddings_.segment = table("token_type", config_.type_vocab_size);
    embeddings_.norm = add_norm("bert.embeddings.LayerNorm.");
}

void BertEncoder::register_layer(const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    Layer layer;
    layer.qkv = add_linear(prefix + "attention." + fused_suffix, 3 * hidden, hidden);
    layer.attention_output = add_linear(prefix + "attention.output.dense.", hidden, hidden);
    layer.attention_norm = add_norm(prefix + "attention.output.LayerNorm.");
    layer.intermediate =
        add_linear(prefix + "intermediate.dense.", config_.intermediate_size, hidden);
    layer.output = add_linear(prefix + "output.dense.", hidden, config_.intermediate_size);
    layer.output_norm = add_norm(prefix + "output.LayerNorm.");
    layers_.push_back(std::move(layer));
}

std::vector<NamedTensor> BertEncoder::stored_tensors() const {
    std::vector<NamedTensor> tensors;
    for (const NamedTensor& parameter : Model::stored_tensors()) {
        const std::size_t at = parameter.name.find(fused_suffix);
        if (at == std::string::npos) {
            tensors.push_back(parameter);
            continue;
        }
        for (std::int64_t i = 0; i < 3; ++i) {
            std::string name = parameter.name;
            name.replace(at, fused_suffix.size(), parts_of_qkv[i]);
            tensors.push_back({name,
                               parameter.tensor.detach().narrow(
                                   0, i * config_.hidden_size, config_.hidden_size)});
        }
    }
    return tensors;
}

// Files converted from TensorFlow call the vectors of normalisations gamma and beta. Files of a
// BertModel alone lack the prefix.
std::map<std::string, std::string> BertEncoder::tensor_aliases() const {
    std::map<std::string, std::string> aliases{{body_prefix + "embeddings.position_ids", ""},
                                               {"embeddings.position_ids", ""}};
    for (const NamedTensor& stored : stored_tensors()) {
        std::vector<std::string> names{stored.name};
        if (const std::size_t norm = stored.name.find(norm_name); norm != std::string::npos) {
            const std::string prefix = stored.name.substr(0, norm + norm_name.size());
            const bool is_bias = stored.name.substr(prefix.size()) == "bias";
            names.push_back(prefix + (is_bias ? "beta" : "gamma"));
        }
        for (const std::string& name : names) {
            if (name != stored.name)
                aliases[name] = stored.name;
            if (name.starts_with(body_prefix))
                aliases[name.substr(body_prefix.size())] = stored.name;
        }
    }
    return aliases;
}

// Some of transformers' classes have no pooler, and most have heads that others lack.
bool BertEncoder::is_head(const std::string& tensor_name) const {
    const std::string name =
        tensor_name.starts_with(body_prefix) ? tensor_name.substr(body_prefix.size()) : tensor_name;
    if (name.starts_with("pooler."))
        return true;
    return name == tensor_name && !name.starts_with("embeddings.") && !name.starts_with("encoder.");
}

InitialDistribution BertEncoder::initial_distribution(const std::string& name) const {
    if (name.size() >= 4 && name.compare(name.size() - 4, 4, "bias") == 0)
        return {InitialDistribution::Kind::constant, 0};
    if (name.find("LayerNorm") != std::string::npos)
        return {InitialDistribution::Kind::constant, 1};
    return {InitialDistribution::Kind::normal, config_.initializer_range};
}

std::vector<CompanionFile> BertEncoder::companion_files() const {
    std::vector<CompanionFile> files = Model::companion_files();
    files.insert(files.end(), text_files_.begin(), text_files_.end());
    return files;
}

at::Tensor BertEncoder::run_last(const Rows& x,
                                 const TokenRows& rows,
                                 const at::Tensor& places,
                                 ForwardPass& pass) const {
    const auto at_places = [&](const at::Tensor& chosen) {
        return run(layers_.size(),
                   x,
                   pass,
                   [this, rows, chosen](const auto& inputs, ForwardPass& of) {
                       const at::Tensor y =
                           encode_places(inputs.front(), rows, chosen, layers_.back(), of);
                       return Rows{y, y};
                   })
            .wide;
    };
    if (!attends_by_sequence(x.wide, rows))
        return at_places(places);
    const auto [ascending, order] = at::sort(places);
    return at_places(ascending).index_select(0, order.argsort());
}

Rows BertEncoder::run(std::size_t unit,
                      const Rows& x,
                      ForwardPass& pass,
                      const LayerComputation& layer) const {
    const bool again = pass.context.mode == Mode::train && is_recomputed(unit);
    const Layer& weights = layers_[unit - 1];
    const bool trains = any_trains({weights.qkv,
                                    weights.attention_output,
                                    weights.attention_norm,
                                    weights.intermediate,
                                    weights.output,
                                    weights.output_norm});
    return run_layer(pass, {x}, again, trains, layer);
}

at::Tensor BertEncoder::first_places(const MicroBatch& batch) {
    const at::Tensor& ids = batch.tensors.at("input_ids");
    return at::arange(0, ids.numel(), ids.size(1), ids.options());
}

at::Tensor BertEncoder::pooled(const at::Tensor& hidden) const {
    return detail::linear_activation(hidden, pooler_, Activation::tanh);
}

at::Tensor BertEncoder::layer_norm(const at::Tensor& x, const Affine& norm) const {
    return at::layer_norm(x, norm.weight.sizes(), norm.weight, norm.bias, config_.layer_norm_eps);
}

at::Tensor BertEncoder::normed_factors(const at::Tensor& x, const Affine& norm) const {
    return x.is_cuda() ? fused_dropout_add_norm(x, {}, {}, norm, config_.layer_norm_eps, {}).factors
                       : layer_norm(x, norm);
}

at::Tensor BertEncoder::linear_activation(const at::Tensor& x, const Affine& affine) const {
    return detail::linear_activation(x, affine, activation_of(config_.activation));
}

at::Tensor BertEncoder::embedding_sum(const at::Tensor& ids,
                                      const at::Tensor& segments,
                                      const TokenRows& rows) const {
    if (ids.is_cuda())
        return fused_embedding({.words = embeddings_.word,
                                .ids = ids,
                                .padding_id = config_.pad_token_id,
                                .positions = embeddings_.position,
                                .position_ids = rows.positions(),
                                .length = rows.width(),
                                .segments = embeddings_.segment,
                                .segment_ids = segments},
                               {},
                               embeddings_.word.scalar_type())
            .wide;
    const at::Tensor sum = at::embedding(embeddings_.word, ids, config_.pad_token_id) +
                           at::embedding(embeddings_.segment, segments);
    return rows.is_packed() ? sum + at::embedding(embeddings_.position, rows.positions())
                            : (sum.view({rows.sequences(), rows.width(), config_.hidden_size}) +
                               embeddings_.position.narrow(0, 0, rows.width()))
                                  .flatten(0, 1);
}

Rows BertEncoder::embed(const TokenRows& rows, ForwardPass& pass) const {
    HETSEQ_ASSERT(rows.width() <= config_.max_position_embeddings);
    const at::Tensor ids = rows.packed(pass.batch.tensors.at("input_ids"));  // (N)
    const at::Tensor segments = rows.packed(pass.batch.tensors.at("segment_ids"));
    const at::Tensor sum = embedding_sum(ids, segments, rows);
    const Dropout dropout = rows.of_rows(pass.next_dropout(config_.hidden_dropout));
    if (sum.is_cuda())
        return fused_norm_dropout(
            sum, embeddings_.norm, config_.layer_norm_eps, dropout, product_type(sum));
    return rows_of(dropped(layer_norm(sum, embeddings_.norm), dropout));
}

// The mask does not depend on the longest row of a micro-batch, where rows have unequal lengths.
DropoutExtent BertEncoder::attention_extent(const ForwardPass& pass, const TokenRows& rows) const {
    const std::int64_t longest =
        pass.batch.padded_tokens > 0 ? config_.max_position_embeddings : rows.width();
    return {longest, longest};
}

Rows BertEncoder::encode(const Rows& x,
                         const TokenRows& rows,
                         const Layer& layer,
                         ForwardPass& pass) const {
    const at::Tensor context = attend(x.factors,
                                      layer.qkv,
                                      rows,
                                      config_.heads,
                                      pass.next_dropout(config_.attention_dropout),
                                      attention_extent(pass, rows));
    const Dropout of_attention = rows.of_rows(pass.next_dropout(config_.hidden_dropout));
    const Dropout of_output = rows.of_rows(pass.next_dropout(config_.hidden_dropout));
    return after_attention(context, x.wide, layer, of_attention, of_output);
}

at::Tensor BertEncoder::encode_places(const Rows& x,
                                      const TokenRows& rows,
                                      const at::Tensor& places,
                                      const Layer& layer,
                                      ForwardPass& pass) const {
    const at::Tensor at_rows = rows.rows_of(places);               // (M)
    const at::Tensor at_places = x.wide.index_select(0, at_rows);  // (M, H)
    const Dropout dropout = pass.next_dropout(config_.attention_dropout);
    const DropoutExtent extent = attention_extent(pass, rows);
    const at::Tensor context =
        attends_by_sequence(x.wide, rows)
            ? attend_from(
                  places, at_places, x.wide, rows, layer.qkv, config_.heads, dropout, extent)
            : attend(x.factors, layer.qkv, rows, config_.heads, dropout, extent)
                  .index_select(0, at_rows);
    const Dropout of_attention = rows.of_places(pass.next_dropout(config_.hidden_dropout), places);
    Dropout of_output = of_attention;
    of_output.key = pass.next_dropout(config_.hidden_dropout).key;
    return after_attention(context, at_places, layer, of_attention, of_output).factors;
}

Rows BertEncoder::after_attention(const at::Tensor& context,
                                  const at::Tensor& x,
                                  const Layer& layer,
                                  const Dropout& of_attention,
                                  const Dropout& of_output) const {
    const Rows attended = linear_dropout_add_norm(context,
                                                  layer.attention_output,
                                                  x,
                                                  layer.attention_norm,
                                                  config_.layer_norm_eps,
                                                  of_attention);
    const at::Tensor inner = linear_activation(attended.factors, layer.intermediate);
    return linear_dropout_add_norm(
        inner, layer.output, attended.wide, layer.output_norm, config_.layer_norm_eps, of_output);
}

}  // namespace hetseq::detail
