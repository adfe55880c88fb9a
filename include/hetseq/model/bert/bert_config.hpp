#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace hetseq {

/// A BERT as Hugging Face's config.json describes it. The defaults are bert-base-uncased's.
struct BertConfig {
    enum class Activation {
        gelu,       // erf form
        gelu_tanh,  // GELU by its tanh approximation
        relu,
        silu
    };

    std::int64_t vocab_size = 30522;
    std::int64_t hidden_size = 768;
    std::int64_t layers = 12;  // num_hidden_layers
    std::int64_t heads = 12;   // num_attention_heads
    std::int64_t intermediate_size = 3072;
    std::int64_t max_position_embeddings = 512;
    std::int64_t type_vocab_size = 2;
    std::int64_t pad_token_id = 0;  // its embedding gets no gradient from the input; -1: none
    Activation activation = Activation::gelu;  // hidden_act
    bool ties_decoder = true;  // tie_word_embeddings: the decoder of masked tokens is the embedding
    double hidden_dropout = 0.1;                 // hidden_dropout_prob, in [0, 1)
    double attention_dropout = 0.1;              // attention_probs_dropout_prob, in [0, 1)
    std::optional<double> classifier_dropout{};  // before a classifier; otherwise hidden_dropout
    double layer_norm_eps = 1e-12;
    double initializer_range = 0.02;  // standard deviation
};

/// The configuration of a preset (tiny, mini, small, base, large: Turc et al. 2019 and Devlin et
/// al. 2019). Any other name is the path of a config.json. Throws as `read_bert_config`.
BertConfig bert_config(const std::string& preset_or_path);

/// Reads a config.json. Keys that are absent keep their defaults, keys that do not change the
/// network are ignored. Throws MissingInput, BadData (no JSON object) or BadConfig, naming the file
/// and the key, for what hetseq's BERT does not support: an activation other than GELU, ReLU and
/// SiLU, a position_embedding_type other than "absolute", a decoder, cross attention, pruned heads,
/// quantised weights, and sizes that do not fit.
BertConfig read_bert_config(const std::filesystem::path& path);

/// Throws BadConfig, naming `origin` and the key, unless the values fit together.
void check(const BertConfig& config, const std::string& origin);

/// The text of a config.json that transformers reads.
std::string to_json(const BertConfig& config);

}  // namespace hetseq
