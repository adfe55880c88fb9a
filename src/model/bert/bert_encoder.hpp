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
///
/// As a chain: the embeddings, each layer but the last, the last one, which gives the rows that the
/// head asks for, and the head.
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
    std::vector<ChainUnit> chain() const override;
    Carried run_units(UnitRange units,
                      const Carried& carried,
                      const MicroBatch& batch,
                      const ForwardContext& context) final;
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) final;

protected:
    const BertConfig& config() const noexcept { return config_; }
    const at::Tensor& word_embeddings() const noexcept { return embeddings_.word; }  // (V, H)

    /// The unit to whose part of the network the parameter of this name belongs. A tied one may be
    /// read in others too.
    std::size_t unit_of(const std::string& parameter_name) const;
    std::size_t head_unit() const noexcept { return layers_.size() + 1; }

    /// Registers a linear layer or a normalisation of H values; `name` ends in a dot.
    Affine add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs);
    Affine add_norm(const std::string& name);

    /// The hidden states at `places` (M) int64 of n * T tokens, (M, H), as factors of products. The
    /// last layer is computed for these alone, and nothing for padding that the batch tells of
    /// (`note_row_lengths`). Takes "input_ids", "segment_ids" and "attention_mask" as `make_bert`
    /// describes them.
    at::Tensor hidden_rows(ForwardPass& pass, const at::Tensor& places) const {
        return run_body({0, head_unit()}, {}, places, pass);
    }
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

    /// Of which of the n * T tokens the head reads the hidden states, (M) int64.
    virtual at::Tensor places(const MicroBatch& batch) const = 0;
    /// What the head makes of the hidden states (M, H) at these places, factors of products.
    virtual ForwardResult result(const at::Tensor& rows, ForwardPass& pass) const = 0;

    void register_embeddings();
    void register_layer(const std::string& prefix);

    /// Units in front of the head: (N, H), or as `hidden_rows` behind the last layer. `places` may
    /// be undefined where this is not among them.
    at::Tensor run_body(UnitRange units,
                        const Carried& carried,
                        const at::Tensor& places,
                        ForwardPass& pass) const;
    /// `layer` of x, which is that of this unit; backward may compute it again.
    Rows run(std::size_t unit,
             const Rows& x,
             ForwardPass& pass,
             const LayerComputation& layer) const;
    /// The last layer's output at `places` (M) in any order, (M, H), factors of products.
    at::Tensor run_last(const Rows& x,
                        const TokenRows& rows,
                        const at::Tensor& places,
                        ForwardPass& pass) const;
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
    /// The layer's output at `places` (M) alone, (M, H), factors of products.
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
