#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/model/transformer/transformer.hpp"

#include "model/recomputed_layer.hpp"
#include "transformer_chain.hpp"
#include "transformer_weights.hpp"

namespace hetseq::detail {

/// The Transformer that `make_transformer` gives.
class EncoderDecoder final : public Transformer {
public:
    /// Throws as `make_transformer`.
    EncoderDecoder(const TransformerConfig& config, TransformerSetup setup);

    const TransformerConfig& config() const override { return config_; }
    const TransformerWeights& weights() const override { return weights_; }

    std::vector<std::string> loss_terms() const override { return {"loss"}; }
    std::vector<MetricSchema> metrics() const override {
        return {{.name = "nll", .term = 0, .is_share = false}, {.name = "accuracy", .term = 0}};
    }
    std::vector<PerplexitySchema> perplexities() const override { return {{"perplexity", "nll"}}; }
    std::vector<std::string> scores() const override { return setup_.scores; }
    bool scores_need_whole_model() const override { return true; }
    std::unique_ptr<CorpusScorer> corpus_scorer() override {
        return setup_.make_scorer ? setup_.make_scorer(*this) : nullptr;
    }
    std::vector<NamedTensor> stored_tensors() const override;
    std::map<std::string, std::string> tensor_aliases() const override;
    InitialDistribution initial_distribution(const std::string& name) const override;
    std::string config_json() const override { return to_json(config_); }
    std::vector<CompanionFile> companion_files() const override;
    std::vector<ChainUnit> chain() const override { return chain_.units(*this); }
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override {
        return run_units({0, chain_.size()}, {}, batch, context).result;
    }
    Carried run_units(UnitRange units,
                      const Carried& carried,
                      const MicroBatch& batch,
                      const ForwardContext& context) override;

private:
    /// What goes from unit to unit.
    struct Stream {
        Rows x;               // the encoder's or the decoder's, (n, S, H) or (n, T, H)
        at::Tensor memory{};  // (n, S, H), factors of products; undefined in the encoder
    };

    /// Any unit but the output. `key_mask` (n, S).
    void advance(Stream& stream,
                 std::size_t unit,
                 const at::Tensor& key_mask,
                 ForwardPass& pass) const;
    ForwardResult result(const at::Tensor& x, const ForwardPass& pass) const;  // x (n, T, H)
    /// `layer` of inputs, which is that of this unit; backward may compute it again.
    Rows run(std::size_t unit,
             const std::vector<Rows>& inputs,
             ForwardPass& pass,
             const LayerComputation& layer) const;
    Rows embed(const at::Tensor& ids,
               const at::Tensor& table,
               const at::Tensor& positions,
               ForwardPass& pass) const;  // (n, length, H)
    Rows encode(std::size_t unit,
                const Rows& x,
                const at::Tensor& key_mask,
                ForwardPass& pass) const;
    Rows decode(std::size_t unit,
                const Stream& given,
                const at::Tensor& key_mask,
                ForwardPass& pass) const;
    at::Tensor attend(const Projection& queries,
                      const Projection& keys_values,
                      const AttentionMask& mask,
                      ForwardPass& pass) const;  // (n, T, H)
    Rows self_attend(const Rows& x,
                     const SelfAttentionWeights& weights,
                     const AttentionMask& mask,
                     ForwardPass& pass) const;
    Rows cross_attend(const Rows& x,
                      const at::Tensor& memory,
                      const CrossAttentionWeights& weights,
                      const AttentionMask& mask,
                      ForwardPass& pass) const;
    Rows feed_forward(const Rows& x, const FeedForwardWeights& weights, ForwardPass& pass) const;
    /// Residual, dropout and normalisation around a part of a layer: `part` makes of the factors of
    /// a product, (n, T, H), what goes into the linear layer `output`.
    template <class Part>
    Rows around(const Rows& x,
                const Affine& norm,
                const Affine& output,
                ForwardPass& pass,
                const Part& part) const;
    at::Tensor normalised(const at::Tensor& x, const Affine& norm) const;

    TransformerConfig config_;
    TransformerSetup setup_;
    TransformerChain chain_;
    TransformerWeights weights_;
};

}  // namespace hetseq::detail
