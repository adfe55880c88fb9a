#include "hetseq/model/bert/bert_config.hpp"

#include <cmath>
#include <map>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"

#include "model/files/model_config_file.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using detail::require;

struct Size {
    std::int64_t layers, hidden_size, heads;
};

const std::map<std::string, Size> presets{{"tiny", {2, 128, 2}},
                                          {"mini", {4, 256, 4}},
                                          {"small", {4, 512, 8}},
                                          {"base", {12, 768, 12}},
                                          {"large", {24, 1024, 16}}};

// The names in transformers. The first of an activation is written.
constexpr std::pair<const char*, BertConfig::Activation> hidden_acts[] = {
    {"gelu", BertConfig::Activation::gelu},
    {"gelu_python", BertConfig::Activation::gelu},
    {"gelu_new", BertConfig::Activation::gelu_tanh},
    {"gelu_pytorch_tanh", BertConfig::Activation::gelu_tanh},
    {"gelu_python_tanh", BertConfig::Activation::gelu_tanh},
    {"gelu_accurate", BertConfig::Activation::gelu_tanh},
    {"gelu_fast", BertConfig::Activation::gelu_tanh},
    {"relu", BertConfig::Activation::relu},
    {"silu", BertConfig::Activation::silu},
    {"swish", BertConfig::Activation::silu}};

BertConfig::Activation activation_of(const std::string& name, const std::string& origin) {
    std::string known;
    for (const auto& [hidden_act, activation] : hidden_acts) {
        if (name == hidden_act)
            return activation;
        known += std::string(known.empty() ? "" : ", ") + hidden_act;
    }
    throw BadConfig(origin + ": hidden_act is \"" + name + "\"",
                    "hetseq's BERT has " + known,
                    "use another model configuration");
}

std::string hidden_act_name(BertConfig::Activation activation) {
    for (const auto& [hidden_act, named] : hidden_acts)
        if (named == activation)
            return hidden_act;
    return {};
}

void read_pad_token(const detail::ModelConfigFile& file,
                    const std::string& origin,
                    std::int64_t& id) {
    file.read("pad_token_id", id);
    require(id >= 0,
            origin,
            "pad_token_id is " + std::to_string(id),
            "it is neither an id of the vocabulary nor null");
    if (file.is_null("pad_token_id"))
        id = -1;
}

// Keys that would change the network, and the only value that leaves it as it is.
void refuse_other_networks(const detail::ModelConfigFile& file) {
    file.require("model_type", "bert");
    file.require("position_embedding_type", "absolute");
    for (const char* key : {"is_decoder", "add_cross_attention", "is_encoder_decoder"})
        file.require(key, false);
    file.require("pruned_heads", nlohmann::json::object());
    file.require("quantization_config", nlohmann::json::object());
}

}  // namespace

void check(const BertConfig& config, const std::string& origin) {
    const std::pair<const char*, std::int64_t> sizes[] = {
        {"vocab_size", config.vocab_size},
        {"hidden_size", config.hidden_size},
        {"num_hidden_layers", config.layers},
        {"num_attention_heads", config.heads},
        {"intermediate_size", config.intermediate_size},
        {"max_position_embeddings", config.max_position_embeddings},
        {"type_vocab_size", config.type_vocab_size}};
    for (const auto& [key, value] : sizes)
        require(value >= 1,
                origin,
                std::string(key) + " is " + std::to_string(value),
                "it must be at least 1");
    require(config.hidden_size % config.heads == 0,
            origin,
            "hidden_size " + std::to_string(config.hidden_size) + " and num_attention_heads " +
                std::to_string(config.heads),
            "every head has the same width");
    require(config.pad_token_id >= -1 && config.pad_token_id < config.vocab_size,
            origin,
            "pad_token_id is " + std::to_string(config.pad_token_id),
            "it is not an id of the vocabulary");
    for (const auto& [key, p] :
         {std::pair{"hidden_dropout_prob (--dropout)", config.hidden_dropout},
          std::pair{"attention_probs_dropout_prob (--attention-dropout)", config.attention_dropout},
          std::pair{"classifier_dropout (--classifier-dropout)",
                    config.classifier_dropout.value_or(0)}})
        require(p >= 0 && p < 1,
                origin,
                std::string(key) + " is " + std::to_string(p),
                "a dropout probability lies in [0, 1)");
    require(std::isfinite(config.layer_norm_eps) && config.layer_norm_eps >= 0,
            origin,
            "layer_norm_eps is " + std::to_string(config.layer_norm_eps),
            "it must be >= 0");
    require(std::isfinite(config.initializer_range) && config.initializer_range >= 0,
            origin,
            "initializer_range is " + std::to_string(config.initializer_range),
            "it must be >= 0");
}

BertConfig read_bert_config(const std::filesystem::path& path) {
    const detail::ModelConfigFile file{path, "BERT", "tiny, mini, small, base, large"};
    refuse_other_networks(file);
    BertConfig config;
    file.read("vocab_size", config.vocab_size);
    file.read("hidden_size", config.hidden_size);
    file.read("num_hidden_layers", config.layers);
    file.read("num_attention_heads", config.heads);
    file.read("intermediate_size", config.intermediate_size);
    file.read("max_position_embeddings", config.max_position_embeddings);
    file.read("type_vocab_size", config.type_vocab_size);
    read_pad_token(file, path.string(), config.pad_token_id);
    std::string hidden_act = hidden_act_name(config.activation);
    file.read("hidden_act", hidden_act);
    config.activation = activation_of(hidden_act, path.string());
    file.read("tie_word_embeddings", config.ties_decoder);
    file.read("hidden_dropout_prob", config.hidden_dropout);
    file.read("attention_probs_dropout_prob", config.attention_dropout);
    file.read("classifier_dropout", config.classifier_dropout);
    file.read("layer_norm_eps", config.layer_norm_eps);
    file.read("initializer_range", config.initializer_range);
    check(config, path.string());
    return config;
}

BertConfig bert_config(const std::string& preset_or_path) {
    const auto preset = presets.find(preset_or_path);
    if (preset == presets.end())
        return read_bert_config(preset_or_path);
    BertConfig config;
    config.layers = preset->second.layers;
    config.hidden_size = preset->second.hidden_size;
    config.heads = preset->second.heads;
    config.intermediate_size = 4 * config.hidden_size;
    return config;
}

std::string to_json(const BertConfig& config) {
    nlohmann::ordered_json pad;  // null
    if (config.pad_token_id >= 0)
        pad = config.pad_token_id;
    nlohmann::ordered_json root{{"architectures", {"BertForPreTraining"}},
                                {"model_type", "bert"},
                                {"vocab_size", config.vocab_size},
                                {"hidden_size", config.hidden_size},
                                {"num_hidden_layers", config.layers},
                                {"num_attention_heads", config.heads},
                                {"intermediate_size", config.intermediate_size},
                                {"max_position_embeddings", config.max_position_embeddings},
                                {"type_vocab_size", config.type_vocab_size},
                                {"pad_token_id", pad},
                                {"hidden_act", hidden_act_name(config.activation)},
                                {"hidden_dropout_prob", config.hidden_dropout},
                                {"attention_probs_dropout_prob", config.attention_dropout},
                                {"layer_norm_eps", config.layer_norm_eps},
                                {"initializer_range", config.initializer_range},
                                {"tie_word_embeddings", config.ties_decoder}};
    if (config.classifier_dropout)
        root["classifier_dropout"] = *config.classifier_dropout;
    return json_text(root, 2) + "\n";
}

}  // namespace hetseq
