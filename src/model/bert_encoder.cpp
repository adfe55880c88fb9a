#include "bert_encoder.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"

#include "parameter_tree.hpp"

namespace hetseq::detail {

namespace {

const std::string fused_suffix = "self.qkv.";
const std::string parts_of_qkv[] = {"self.query.", "self.key.", "self.value."};

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
    const at::Tensor weight = register_by_path(*this, name + "weight", {outputs, inputs});
    return {weight, register_by_path(*this, name + "bias", {outputs})};
}

Affine BertEncoder::add_norm(const std::string& name) {
    const at::Tensor weight = register_by_path(*this, name + "weight", {config_.hidden_size});
    return {weight, register_by_path(*this, name + "bias", {config_.hidden_size})};
}

void BertEncoder::register_embeddings() {
    const auto table = [&](const std::string& name, std::int64_t rows) {
        return register_by_path(
            *this, "bert.embeddings." + name + "_embeddings.weight", {rows, config_.hidden_size});
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

// Files converted from TensorFlow call the vectors of normalisations gamma and beta.
std::map<std::string, std::string> BertEncoder::tensor_aliases() const {
    std::map<std::string, std::string> aliases{{"bert.embeddings.position_ids", ""}};
    for (const NamedTensor& stored : stored_tensors()) {
        const std::size_t norm = stored.name.find("LayerNorm.");
        if (norm == std::string::npos)
            continue;
        const std::string prefix = stored.name.substr(0, norm + std::string("LayerNorm.").size());
        const bool is_bias = stored.name.substr(prefix.size()) == "bias";
        aliases[prefix + (is_bias ? "beta" : "gamma")] = stored.name;
    }
    return aliases;
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

at::Tensor BertEncoder::hidden_states(ForwardPass& pass) const {
    at::Tensor x = embed(pass);
    for (const Layer& layer : layers_)
        x = encode(std::move(x), layer, pass);
    return x;
}

at::Tensor BertEncoder::pooled(const at::Tensor& hidden) const {
    return at::tanh(at::linear(hidden.select(1, 0), pooler_.weight, pooler_.bias));
}

at::Tensor BertEncoder::layer_norm(const at::Tensor& x, const Affine& norm) const {
    return at::layer_norm(x, norm.weight.sizes(), norm.weight, norm.bias, config_.layer_norm_eps);
}

at::Tensor BertEncoder::embed(ForwardPass& pass) const {
    const at::Tensor& ids = pass.batch.tensors.at("input_ids");  // (n, T)
    const at::Tensor& segments = pass.batch.tensors.at("segment_ids");
    HETSEQ_ASSERT(ids.size(1) <= config_.max_position_embeddings);
    const at::Tensor sum = at::embedding(embeddings_.word, ids, config_.pad_token_id) +
                           at::embedding(embeddings_.segment, segments) +
                           embeddings_.position.narrow(0, 0, ids.size(1));
    const Dropout dropout = pass.next_dropout(config_.hidden_dropout);
    return counter_dropout(
        layer_norm(sum, embeddings_.norm), dropout.p, dropout.key, dropout.sample_ids);
}

at::Tensor BertEncoder::encode(at::Tensor x, const Layer& layer, ForwardPass& pass) const {
    const auto mask = pass.batch.tensors.find("attention_mask");
    const at::Tensor key_mask =
        mask == pass.batch.tensors.end() ? at::Tensor{} : mask->second.to(at::kBool);
    const at::Tensor qkv = at::linear(x, layer.qkv.weight, layer.qkv.bias);
    DropoutExtent extent;
    if (pass.batch.padded_tokens > 0)  // rows of unequal lengths
        extent = {config_.max_position_embeddings, config_.max_position_embeddings};
    const at::Tensor context = self_attention(
        qkv, key_mask, config_.heads, pass.next_dropout(config_.attention_dropout), extent);
    x = dropout_add_norm(
        at::linear(context, layer.attention_output.weight, layer.attention_output.bias),
        x,
        layer.attention_norm,
        config_.layer_norm_eps,
        pass.next_dropout(config_.hidden_dropout));
    const at::Tensor inner = linear_gelu(x, layer.intermediate);
    return dropout_add_norm(at::linear(inner, layer.output.weight, layer.output.bias),
                            x,
                            layer.output_norm,
                            config_.layer_norm_eps,
                            pass.next_dropout(config_.hidden_dropout));
}

}  // namespace hetseq::detail
