#include "hetseq/model/transformer/transformer_config.hpp"

#include <map>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"

#include "model/files/model_config_file.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using detail::require;
using Activation = TransformerConfig::Activation;
using Positions = TransformerConfig::Positions;
using Shared = TransformerConfig::SharedEmbeddings;

constexpr const char* transformer_presets = "tiny, base, big";

template <class Value>
using Names = std::vector<std::pair<std::string, Value>>;

const Names<Shared> shared_names{
    {"none", Shared::none}, {"decoder", Shared::decoder}, {"all", Shared::all}};
const Names<Positions> position_names{{"sinusoidal", Positions::sinusoidal},
                                      {"learned", Positions::learned}};
const Names<Activation> activation_names{{"relu", Activation::relu}, {"gelu", Activation::gelu}};

template <class Value>
std::string name_of(Value value, const Names<Value>& names) {
    for (const auto& [name, named] : names)
        if (named == value)
            return name;
    throw InternalError("a value of a Transformer's configuration has no name");
}

template <class Value>
Value named(const std::string& text, const Names<Value>& names, const std::string& origin) {
    std::string all;
    for (const auto& [name, value] : names) {
        if (name == text)
            return value;
        all += (all.empty() ? "" : ", ") + name;
    }
    throw BadConfig(origin + " is '" + text + "'", "it must be one of " + all, "give one of these");
}

template <class Value>
void read_named(const detail::ModelConfigFile& file,
                const char* key,
                const Names<Value>& names,
                const std::string& origin,
                Value& value) {
    std::string text = name_of(value, names);
    file.read(key, text);
    value = named(text, names, origin + ": " + key);
}

void check_sizes(const TransformerConfig& config, const std::string& origin) {
    const std::pair<const char*, std::int64_t> sizes[] = {
        {"source_vocab_size", config.source_vocab_size},
        {"target_vocab_size", config.target_vocab_size},
        {"d_model", config.width},
        {"ffn_dim", config.inner_width},
        {"attention_heads", config.heads},
        {"encoder_layers", config.encoder_layers},
        {"decoder_layers", config.decoder_layers},
        {"max_positions", config.max_positions}};
    for (const auto& [key, value] : sizes)
        require(value >= 1,
                origin,
                std::string(key) + " is " + std::to_string(value),
                "it must be at least 1");
}

}  // namespace

void check(const TransformerConfig& config, const std::string& origin) {
    check_sizes(config, origin);
    require(config.width % config.heads == 0,
            origin,
            "d_model " + std::to_string(config.width) + " and attention_heads " +
                std::to_string(config.heads),
            "every head has the same width");
    require(config.positions == Positions::learned || config.width % 2 == 0,
            origin,
            "d_model is " + std::to_string(config.width),
            "sinusoidal positions need an even one");
    require(config.shared_embeddings != Shared::all ||
                config.source_vocab_size == config.target_vocab_size,
            origin,
            "all embeddings are shared, the vocabularies have " +
                std::to_string(config.source_vocab_size) + " and " +
                std::to_string(config.target_vocab_size) + " entries",
            "one table needs one vocabulary");
    for (const auto& [key, id] :
         {std::pair{"begin_id", config.begin_id}, std::pair{"end_id", config.end_id}})
        require(id >= 0 && id < config.target_vocab_size,
                origin,
                std::string(key) + " is " + std::to_string(id),
                "it is not an id of the target's vocabulary");
    for (const auto& [key, p] :
         {std::pair{"dropout (--dropout)", config.dropout},
          std::pair{"attention_dropout (--attention-dropout)", config.attention_dropout},
          std::pair{"activation_dropout (--activation-dropout)", config.activation_dropout}})
        require(p >= 0 && p < 1,
                origin,
                std::string(key) + " is " + std::to_string(p),
                "a dropout probability lies in [0, 1)");
}

TransformerConfig read_transformer_config(const std::filesystem::path& path) {
    const detail::ModelConfigFile file{path, "Transformer", transformer_presets};
    const std::string origin = path.string();
    file.require("model_type", "transformer");
    TransformerConfig config;
    file.read("source_vocab_size", config.source_vocab_size);
    file.read("target_vocab_size", config.target_vocab_size);
    file.read("d_model", config.width);
    file.read("ffn_dim", config.inner_width);
    file.read("attention_heads", config.heads);
    file.read("encoder_layers", config.encoder_layers);
    file.read("decoder_layers", config.decoder_layers);
    file.read("max_positions", config.max_positions);
    file.read("dropout", config.dropout);
    file.read("attention_dropout", config.attention_dropout);
    file.read("activation_dropout", config.activation_dropout);
    read_named(file, "shared_embeddings", shared_names, origin, config.shared_embeddings);
    read_named(file, "positions", position_names, origin, config.positions);
    read_named(file, "activation_function", activation_names, origin, config.activation);
    file.read("pre_norm", config.pre_norm);
    file.read("begin_id", config.begin_id);
    file.read("end_id", config.end_id);
    return config;
}

TransformerConfig transformer_config(const std::string& preset_or_path) {
    const std::string prefix = "transformer-";
    const std::string name = preset_or_path.rfind(prefix, 0) == 0
                                 ? preset_or_path.substr(prefix.size())
                                 : preset_or_path;
    TransformerConfig config;
    if (name == "base")
        return config;
    if (name == "tiny") {
        config.width = 128;
        config.inner_width = 256;
        config.heads = 4;
        config.encoder_layers = config.decoder_layers = 4;
        return config;
    }
    if (name == "big") {
        config.width = 1024;
        config.inner_width = 4096;
        config.heads = 16;
        config.dropout = 0.3;
        return config;
    }
    return read_transformer_config(preset_or_path);
}

std::string to_json(const TransformerConfig& config) {
    const nlohmann::ordered_json root{
        {"model_type", "transformer"},
        {"source_vocab_size", config.source_vocab_size},
        {"target_vocab_size", config.target_vocab_size},
        {"d_model", config.width},
        {"ffn_dim", config.inner_width},
        {"attention_heads", config.heads},
        {"encoder_layers", config.encoder_layers},
        {"decoder_layers", config.decoder_layers},
        {"max_positions", config.max_positions},
        {"dropout", config.dropout},
        {"attention_dropout", config.attention_dropout},
        {"activation_dropout", config.activation_dropout},
        {"shared_embeddings", to_text(config.shared_embeddings)},
        {"positions", to_text(config.positions)},
        {"activation_function", name_of(config.activation, activation_names)},
        {"pre_norm", config.pre_norm},
        {"begin_id", config.begin_id},
        {"end_id", config.end_id}};
    return json_text(root, 2) + "\n";
}

std::string to_text(TransformerConfig::SharedEmbeddings shared) {
    return name_of(shared, shared_names);
}

TransformerConfig::SharedEmbeddings shared_embeddings_from_text(const std::string& text,
                                                                const std::string& origin) {
    return named(text, shared_names, origin);
}

std::string to_text(TransformerConfig::Positions positions) {
    return name_of(positions, position_names);
}

TransformerConfig::Positions positions_from_text(const std::string& text,
                                                 const std::string& origin) {
    return named(text, position_names, origin);
}

}  // namespace hetseq
