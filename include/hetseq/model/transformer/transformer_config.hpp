#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hetseq {

/// An encoder-decoder Transformer (Vaswani et al. 2017, "Attention is all you need"). The defaults
/// are the paper's base model.
struct TransformerConfig {
    enum class SharedEmbeddings { none, decoder, all };
    enum class Positions { sinusoidal, learned };
    enum class Activation { relu, gelu };

    std::int64_t source_vocab_size = 0;
    std::int64_t target_vocab_size = 0;
    std::int64_t width = 512;         // d_model
    std::int64_t inner_width = 2048;  // of the feed-forward layers (ffn_dim)
    std::int64_t heads = 8;           // attention_heads
    std::int64_t encoder_layers = 6;
    std::int64_t decoder_layers = 6;
    std::int64_t max_positions = 1024;  // of a source and of a target, the end symbol's included
    double dropout = 0.1;               // of embeddings and of each layer's parts, in [0, 1)
    double attention_dropout = 0;       // of attention's probabilities, in [0, 1)
    double activation_dropout = 0;      // inside the feed-forward layers, in [0, 1)
    /// The decoder's input and output tables are one, or both of these and the encoder's.
    SharedEmbeddings shared_embeddings = SharedEmbeddings::all;
    Positions positions = Positions::sinusoidal;
    Activation activation = Activation::relu;
    bool pre_norm = false;  // normalise before each part instead of behind it
    // Ids of the target's vocabulary.
    std::int64_t begin_id = 1;
    std::int64_t end_id = 2;
};

/// The configuration of a preset: tiny (for Multi30k), base, big (Vaswani et al. 2017, table 3);
/// "transformer-tiny" and so on are the same. Any other name is the path of a config.json.
/// Presets have no vocabulary yet. Throws as `read_transformer_config`.
TransformerConfig transformer_config(const std::string& preset_or_path);

/// Reads a config.json as `to_json` makes it. Keys that are absent keep their defaults, keys that
/// do not change the network are ignored. Throws MissingInput, BadData (no JSON object) or
/// BadConfig, naming the file and the key.
TransformerConfig read_transformer_config(const std::filesystem::path& path);

/// Throws BadConfig, naming `origin` and the key, unless the values fit together.
void check(const TransformerConfig& config, const std::string& origin);

/// The text of a config.json.
std::string to_json(const TransformerConfig& config);

/// "none", "decoder" or "all", and back. Throws BadConfig, naming `origin`, for another text.
std::string to_text(TransformerConfig::SharedEmbeddings shared);
TransformerConfig::SharedEmbeddings shared_embeddings_from_text(const std::string& text,
                                                                const std::string& origin);
/// "sinusoidal" or "learned", and back.
std::string to_text(TransformerConfig::Positions positions);
TransformerConfig::Positions positions_from_text(const std::string& text,
                                                 const std::string& origin);

}  // namespace hetseq
