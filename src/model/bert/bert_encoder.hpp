#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hetseq/model/bert/bert_config.hpp"
#include "hetseq/model/model.hpp"

#include "model/recomputed_layer.hpp"
#include "model/token_rows.hpp"
#include "model/transformer_ops.hpp"

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
    bool is_head(const std::string& tensor_name) const override;
    InitialDistribution initial_distribution(const std::string& name) const override;
    std::string config_json() const override { return to_json(config_); }
    std::vector<CompanionFile> companion_files() const override;
    std::int64_t recomputable_layers() const override { return config_.layers; }

protected:
    const BertConfig& config() const noexcept { return config_; }
    const at::Tensor& word_embeddings() const noexcept { return embeddings_.word; }  // (V, H)

    /// Registers a linear layer or a normalisation of H values; `name` ends in a dot.
    Affine add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs);
    Affine add_norm(const std::string& name);

    /// The hidden states at `places` (M) int64 of n * T tokens, (M, H), as factors of products. The
    /// last layer is computed for these alone, and nothing for padding that the batch tells of
    /// (`note_row_lengths`). Takes "input_ids", "segment_ids" and "attention_mask" as `make_bert`
    /// describes them.
    at::Tensor hidden_rows(ForwardPass& pass, const at::Tensor& places) const;
    /// The places of the sequences' first tokens, (n) int64.
    static at::Tensor first_places(const MicroBatch& batch);
    /// With a pooler: (n, H) of `hidden` (n, H), the first tokens' hidden states.
    at::Tensor pooled(const at::Tensor& hidden) const;
    at::Tensor layer_norm(const at::Tensor& x, const Affine& norm) const;
    /// The same of what an activation gave, as factors of a product.
    at::Tensor normed_factors(const at::Tensor& x, const Affine& norm) const;
    /// The configuration's activation of x weight^T + bias.
    at::Tensor linear_activation(const at::Tensor& x, const Affine& affine) const;

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

    /// `layer` of x, which is that of this index; backward may compute it again.
    Rows run(std::size_t index,
             const Rows& x,
             ForwardPass& pass,
             const LayerComputation& layer) const;
    DropoutExtent attention_extent(const ForwardPass& pass, const TokenRows& rows) const;
    Rows embed(const TokenRows& rows, ForwardPass& pass) const;  // (N, H)
    /// Of the rows' ids and segments, (N) both. Returns (N, H).
    at::Tensor embedding_sum(const at::Tensor& ids,
                             const at::Tensor& segments,
                             const TokenRows& rows) const;
    Rows encode(const Rows& x,
                const TokenRows& rows,
                const Layer& layer,
                ForwardPass& pass) const;  // (N, H)
    /// The layer's output at `places` (M) alone, (M, H).
    at::Tensor encode_places(const Rows& x,
                             const TokenRows& rows,
                             const at::Tensor& places,
                             const Layer& layer,
                             ForwardPass& pass) const;
    /// What follows the attention: `context` and `x` (M, H), as many as the dropouts have rows.
    Rows after_attention(const at::Tensor& context,
                         const at::Tensor& x,
                         const Layer& layer,
                         const Dropout& of_attention,
                         const Dropout& of_output) const;

    BertConfig config_;
    std::vector<CompanionFile> text_files_;
    Embeddings embeddings_;
    std::vector<Layer> layers_;
    Affine pooler_;  // (H, H)
};

}  // namespace hetseq::detail
