#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transformer_ops.hpp"

#include "hetseq/model/bert_config.hpp"
#include "hetseq/model/model.hpp"

namespace hetseq::detail {

enum class BertPooler { without, with };

/// The part that all BERTs share: embeddings, layers and, where it is asked for, the pooler. The
/// base of models that put heads on it. Parameters are stored under Hugging Face's names.
class BertEncoder : public Model {
public:
    /// Throws BadConfig as `check`.
    BertEncoder(const BertConfig& config, BertPooler pooler, std::vector<CompanionFile> text_files);

    std::vector<NamedTensor> stored_tensors() const override;
    std::map<std::string, std::string> tensor_aliases() const override;
    InitialDistribution initial_distribution(const std::string& name) const override;
    std::string config_json() const override { return to_json(config_); }
    std::vector<CompanionFile> companion_files() const override;

protected:
    const BertConfig& config() const noexcept { return config_; }
    const at::Tensor& word_embeddings() const noexcept { return embeddings_.word; }  // (V, H)

    /// Registers a linear layer or a normalisation of H values; `name` ends in a dot.
    Affine add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs);
    Affine add_norm(const std::string& name);

    /// Takes "input_ids", "segment_ids" and "attention_mask" as `make_bert` describes them.
    at::Tensor hidden_states(ForwardPass& pass) const;  // (n, T, H)
    at::Tensor pooled(const at::Tensor& hidden) const;  // (n, H) of (n, T, H); with a pooler
    at::Tensor layer_norm(const at::Tensor& x, const Affine& norm) const;

private:
    struct Embeddings {
        at::Tensor word;      // (V, H)
        at::Tensor position;  // (max_position_embeddings, H)
        at::Tensor segment;   // (type_vocab_size, H)
        Affine norm;
    };

    struct Layer {
        Affine qkv;  // (3H, H): query, key and value in one product; files hold them apart
        Affine attention_output, attention_norm;
        Affine intermediate;  // (I, H)
        Affine output, output_norm;
    };

    void register_embeddings();
    void register_layer(const std::string& prefix);

    at::Tensor embed(ForwardPass& pass) const;                                     // (n, T, H)
    at::Tensor encode(at::Tensor x, const Layer& layer, ForwardPass& pass) const;  // (n, T, H)

    BertConfig config_;
    std::vector<CompanionFile> text_files_;
    Embeddings embeddings_;
    std::vector<Layer> layers_;
    Affine pooler_;  // (H, H)
};

}  // namespace hetseq::detail
