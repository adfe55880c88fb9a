#include "hetseq/model/bert.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"

#include "parameter_tree.hpp"
#include "transformer_ops.hpp"

namespace hetseq {

namespace {

using detail::Affine;
using detail::Dropout;
using detail::ForwardPass;

const std::string fused_suffix = "self.qkv.";
const std::string parts_of_qkv[] = {"self.query.", "self.key.", "self.value."};

struct Embeddings {
    at::Tensor word;      // (V, H), also the decoder of the masked-token head
    at::Tensor position;  // (max_position_embeddings, H)
    at::Tensor segment;   // (type_vocab_size, H)
    Affine norm;
};

struct EncoderLayer {
    Affine qkv;  // (3H, H): query, key and value in one product; files hold them apart
    Affine attention_output, attention_norm;
    Affine intermediate;  // (I, H)
    Affine output, output_norm;
};

struct Heads {
    Affine pooler, next_sentence;  // (H, H), (2, H)
    Affine transform, transform_norm;
    at::Tensor decoder_bias;  // (V)
};

class Bert final : public Model {
public:
    Bert(const BertConfig& config, std::vector<CompanionFile> text_files)
        : config_{config}, text_files_{std::move(text_files)} {
        check(config, "the BERT to be made");
        register_embeddings();
        for (std::int64_t i = 0; i < config.layers; ++i)
            register_layer("bert.encoder.layer." + std::to_string(i) + ".");
        register_heads();
    }

    std::vector<std::string> loss_terms() const override { return {"mlm", "nsp"}; }
    std::vector<MetricSchema> metrics() const override {
        return {{"mlm_accuracy", 0}, {"nsp_accuracy", 1}};
    }
    std::vector<NamedTensor> stored_tensors() const override;
    std::map<std::string, std::string> tensor_aliases() const override;
    InitialDistribution initial_distribution(const std::string& name) const override;
    std::string config_json() const override { return to_json(config_); }
    std::vector<CompanionFile> companion_files() const override;
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override;
    bool predicts() const override { return true; }
    std::vector<Prediction> predict(const MicroBatch& batch) override;

private:
    void register_embeddings();
    void register_layer(const std::string& prefix);
    void register_heads();
    Affine add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs);
    Affine add_norm(const std::string& name);

    at::Tensor hidden_states(ForwardPass& pass) const;  // (n, T, H)
    at::Tensor embed(ForwardPass& pass) const;          // (n, T, H)
    at::Tensor encode(at::Tensor x,
                      const EncoderLayer& layer,
                      ForwardPass& pass) const;  // (n, T, H)
    detail::CrossEntropy masked_tokens(const at::Tensor& x, const ForwardPass& pass) const;
    at::Tensor pooled(const at::Tensor& x) const;  // (n, H)
    detail::CrossEntropy next_sentence(const at::Tensor& x, const ForwardPass& pass) const;

    BertConfig config_;
    std::vector<CompanionFile> text_files_;
    Embeddings embeddings_;
    std::vector<EncoderLayer> layers_;
    Heads heads_;
};

Affine Bert::add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    const at::Tensor weight = detail::register_by_path(*this, name + "weight", {outputs, inputs});
    return {weight, detail::register_by_path(*this, name + "bias", {outputs})};
}

Affine Bert::add_norm(const std::string& name) {
    const at::Tensor weight =
        detail::register_by_path(*this, name + "weight", {config_.hidden_size});
    return {weight, detail::register_by_path(*this, name + "bias", {config_.hidden_size})};
}

void Bert::register_embeddings() {
    const auto table = [&](const std::string& name, std::int64_t rows) {
        return detail::register_by_path(
            *this, "bert.embeddings." + name + "_embeddings.weight", {rows, config_.hidden_size});
    };
    embeddings_.word = table("word", config_.vocab_size);
    embeddings_.position = table("position", config_.max_position_embeddings);
    embeddings_.segment = table("token_type", config_.type_vocab_size);
    embeddings_.norm = add_norm("bert.embeddings.LayerNorm.");
}

void Bert::register_layer(const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    EncoderLayer layer;
    layer.qkv = add_linear(prefix + "attention." + fused_suffix, 3 * hidden, hidden);
    layer.attention_output = add_linear(prefix + "attention.output.dense.", hidden, hidden);
    layer.attention_norm = add_norm(prefix + "attention.output.LayerNorm.");
    layer.intermediate =
        add_linear(prefix + "intermediate.dense.", config_.intermediate_size, hidden);
    layer.output = add_linear(prefix + "output.dense.", hidden, config_.intermediate_size);
    layer.output_norm = add_norm(prefix + "output.LayerNorm.");
    layers_.push_back(std::move(layer));
}

void Bert::register_heads() {
    const std::int64_t hidden = config_.hidden_size;
    heads_.pooler = add_linear("bert.pooler.dense.", hidden, hidden);
    heads_.next_sentence = add_linear("cls.seq_relationship.", 2, hidden);
    heads_.transform = add_linear("cls.predictions.transform.dense.", hidden, hidden);
    heads_.transform_norm = add_norm("cls.predictions.transform.LayerNorm.");
    heads_.decoder_bias =
        detail::register_by_path(*this, "cls.predictions.bias", {config_.vocab_size});
}

std::vector<NamedTensor> Bert::stored_tensors() const {
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

// Some versions of transformers write the tied decoder, others do not. Files converted from
// TensorFlow call the vectors of normalisations gamma and beta.
std::map<std::string, std::string> Bert::tensor_aliases() const {
    std::map<std::string, std::string> aliases{
        {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
        {"cls.predictions.decoder.bias", "cls.predictions.bias"},
        {"bert.embeddings.position_ids", ""}};
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

InitialDistribution Bert::initial_distribution(const std::string& name) const {
    if (name.size() >= 4 && name.compare(name.size() - 4, 4, "bias") == 0)
        return {InitialDistribution::Kind::constant, 0};
    if (name.find("LayerNorm") != std::string::npos)
        return {InitialDistribution::Kind::constant, 1};
    return {InitialDistribution::Kind::normal, config_.initializer_range};
}

std::vector<CompanionFile> Bert::companion_files() const {
    std::vector<CompanionFile> files = Model::companion_files();
    files.insert(files.end(), text_files_.begin(), text_files_.end());
    return files;
}

ForwardResult Bert::forward(const MicroBatch& batch, const ForwardContext& context) {
    ForwardPass pass{batch, context};
    const at::Tensor x = hidden_states(pass);
    const detail::CrossEntropy mlm = masked_tokens(x, pass), nsp = next_sentence(x, pass);
    ForwardResult result;
    result.losses = {mlm.loss, nsp.loss};
    if (context.mode == Mode::evaluate)
        result.metrics = {mlm.correct, nsp.correct};
    return result;
}

std::vector<Prediction> Bert::predict(const MicroBatch& batch) {
    const ForwardContext context{.mode = Mode::evaluate};
    ForwardPass pass{batch, context};
    const at::Tensor embeddings = pooled(hidden_states(pass));
    const at::Tensor scores =
        at::linear(embeddings, heads_.next_sentence.weight, heads_.next_sentence.bias);
    return {{"embeddings", embeddings.to(at::kFloat)},
            {"next_sentence", at::softmax(scores, 1).to(at::kFloat)}};
}

at::Tensor Bert::hidden_states(ForwardPass& pass) const {
    at::Tensor x = embed(pass);
    for (const EncoderLayer& layer : layers_)
        x = encode(std::move(x), layer, pass);
    return x;
}

at::Tensor Bert::embed(ForwardPass& pass) const {
    const at::Tensor& ids = pass.batch.tensors.at("input_ids");  // (n, T)
    const at::Tensor& segments = pass.batch.tensors.at("segment_ids");
    HETSEQ_ASSERT(ids.size(1) <= config_.max_position_embeddings);
    const at::Tensor sum = at::embedding(embeddings_.word, ids, config_.pad_token_id) +
                           at::embedding(embeddings_.segment, segments) +
                           embeddings_.position.narrow(0, 0, ids.size(1));
    const at::Tensor normed = at::layer_norm(sum,
                                             embeddings_.norm.weight.sizes(),
                                             embeddings_.norm.weight,
                                             embeddings_.norm.bias,
                                             config_.layer_norm_eps);
    const Dropout dropout = pass.next_dropout(config_.hidden_dropout);
    return counter_dropout(normed, dropout.p, dropout.key, dropout.sample_ids);
}

at::Tensor Bert::encode(at::Tensor x, const EncoderLayer& layer, ForwardPass& pass) const {
    const auto mask = pass.batch.tensors.find("attention_mask");
    const at::Tensor key_mask =
        mask == pass.batch.tensors.end() ? at::Tensor{} : mask->second.to(at::kBool);
    const at::Tensor qkv = at::linear(x, layer.qkv.weight, layer.qkv.bias);
    DropoutExtent extent;
    if (pass.batch.padded_tokens > 0)  // rows of unequal lengths
        extent = {config_.max_position_embeddings, config_.max_position_embeddings};
    const at::Tensor context = detail::self_attention(
        qkv, key_mask, config_.heads, pass.next_dropout(config_.attention_dropout), extent);
    x = detail::dropout_add_norm(
        at::linear(context, layer.attention_output.weight, layer.attention_output.bias),
        x,
        layer.attention_norm,
        config_.layer_norm_eps,
        pass.next_dropout(config_.hidden_dropout));
    const at::Tensor inner = detail::linear_gelu(x, layer.intermediate);
    return detail::dropout_add_norm(at::linear(inner, layer.output.weight, layer.output.bias),
                                    x,
                                    layer.output_norm,
                                    config_.layer_norm_eps,
                                    pass.next_dropout(config_.hidden_dropout));
}

detail::CrossEntropy Bert::masked_tokens(const at::Tensor& x, const ForwardPass& pass) const {
    const at::Tensor rows =
        x.flatten(0, 1).index_select(0, pass.batch.tensors.at("masked_positions"));  // (M, H)
    const at::Tensor transformed = at::layer_norm(detail::linear_gelu(rows, heads_.transform),
                                                  heads_.transform_norm.weight.sizes(),
                                                  heads_.transform_norm.weight,
                                                  heads_.transform_norm.bias,
                                                  config_.layer_norm_eps);
    return detail::linear_cross_entropy(transformed,
                                        {embeddings_.word, heads_.decoder_bias},
                                        pass.batch.tensors.at("masked_labels"),
                                        pass.count_correct());
}

at::Tensor Bert::pooled(const at::Tensor& x) const {
    return at::tanh(at::linear(x.select(1, 0), heads_.pooler.weight, heads_.pooler.bias));
}

detail::CrossEntropy Bert::next_sentence(const at::Tensor& x, const ForwardPass& pass) const {
    return detail::linear_cross_entropy(pooled(x),
                                        heads_.next_sentence,
                                        pass.batch.tensors.at("next_sentence_labels"),
                                        pass.count_correct());
}

}  // namespace

std::shared_ptr<Model> make_bert(const BertConfig& config, std::vector<CompanionFile> text_files) {
    return std::make_shared<Bert>(config, std::move(text_files));
}

}  // namespace hetseq
