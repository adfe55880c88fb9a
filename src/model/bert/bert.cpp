#include "hetseq/model/bert/bert.hpp"

#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>

#include "hetseq/model/autocast.hpp"

#include "bert_encoder.hpp"

namespace hetseq {

namespace {

using detail::Affine;
using detail::ForwardPass;

const std::string decoder_name = "cls.predictions.decoder.";
const std::string head_bias = "cls.predictions.bias";
const std::string word_embeddings_name = "bert.embeddings.word_embeddings.weight";

class BertForPreTraining final : public detail::BertEncoder {
public:
    BertForPreTraining(const BertConfig& config,
                       std::vector<CompanionFile> text_files,
                       std::function<at::Tensor()> decoder_bias);

    std::vector<std::string> loss_terms() const override { return {"mlm", "nsp"}; }
    std::vector<MetricSchema> metrics() const override {
        return {{"mlm_accuracy", 0}, {"nsp_accuracy", 1}};
    }
    std::vector<PerplexitySchema> perplexities() const override {
        return {{"mlm_perplexity", "mlm"}};
    }
    std::map<std::string, std::string> tensor_aliases() const override;
    InitialDistribution initial_distribution(const std::string& name) const override;
    std::vector<ChainUnit> chain() const override;
    bool predicts() const override { return true; }
    std::vector<Prediction> predict(const MicroBatch& batch) override;

private:
    /// Those of the first tokens, then those of the masked ones.
    at::Tensor places(const MicroBatch& batch) const override {
        return at::cat({first_places(batch), batch.tensors.at("masked_positions")});
    }
    ForwardResult result(const at::Tensor& rows, ForwardPass& pass) const override;
    /// Of the hidden states (M, H) of the masked tokens, and (n, H) of the first ones.
    detail::CrossEntropy masked_tokens(const at::Tensor& x, const ForwardPass& pass) const;
    detail::CrossEntropy next_sentence(const at::Tensor& x, const ForwardPass& pass) const;

    Affine next_sentence_;  // (2, H)
    Affine transform_, transform_norm_;
    Affine decoder_;  // (V, H); the word embedding or, where it is not tied to it, of its own
    std::function<at::Tensor()> first_decoder_bias_;  // (V)
};

BertForPreTraining::BertForPreTraining(const BertConfig& config,
                                       std::vector<CompanionFile> text_files,
                                       std::function<at::Tensor()> decoder_bias)
    : BertEncoder{config, detail::BertPooler::with, std::move(text_files)},
      first_decoder_bias_{std::move(decoder_bias)} {
    const std::int64_t hidden = config.hidden_size;
    next_sentence_ = add_linear("cls.seq_relationship.", 2, hidden);
    transform_ = add_linear("cls.predictions.transform.dense.", hidden, hidden);
    transform_norm_ = add_norm("cls.predictions.transform.LayerNorm.");
    if (config.ties_decoder)
        decoder_ = {word_embeddings(),
                    register_parameter(head_bias, at::empty({config.vocab_size}))};
    else
        decoder_ = add_linear(decoder_name, config.vocab_size, hidden);
}

// Some versions of transformers write the tied decoder, others do not. Of a decoder of its own,
// transformers 5 adds the decoder's bias and writes the head's, which nothing uses, beside it;
// transformers 4 has one bias under one or both names.
std::map<std::string, std::string> BertForPreTraining::tensor_aliases() const {
    std::map<std::string, std::string> aliases = BertEncoder::tensor_aliases();
    if (config().ties_decoder) {
        aliases[decoder_name + "weight"] = word_embeddings_name;
        aliases[decoder_name + "bias"] = head_bias;
    } else {
        aliases[head_bias] = decoder_name + "bias";
    }
    return aliases;
}

InitialDistribution BertForPreTraining::initial_distribution(const std::string& name) const {
    const std::string bias = config().ties_decoder ? head_bias : decoder_name + "bias";
    if (name == bias && first_decoder_bias_)
        return {.kind = InitialDistribution::Kind::elements, .elements = first_decoder_bias_()};
    return BertEncoder::initial_distribution(name);
}

std::vector<ChainUnit> BertForPreTraining::chain() const {
    std::vector<ChainUnit> units = BertEncoder::chain();
    if (config().ties_decoder)
        units.back().parameters.push_back(word_embeddings_name);
    return units;
}

ForwardResult BertForPreTraining::result(const at::Tensor& rows, ForwardPass& pass) const {
    const std::int64_t sequences = pass.batch.tensors.at("input_ids").size(0);
    const std::vector<at::Tensor> x = rows.split_with_sizes({sequences, rows.size(0) - sequences});
    const detail::CrossEntropy mlm = masked_tokens(x[1], pass), nsp = next_sentence(x[0], pass);
    ForwardResult result;
    result.losses = {mlm.loss, nsp.loss};
    if (pass.context.mode == Mode::evaluate)
        result.metrics = {mlm.correct, nsp.correct};
    return result;
}

std::vector<Prediction> BertForPreTraining::predict(const MicroBatch& batch) {
    const ForwardContext context{.mode = Mode::evaluate};
    ForwardPass pass{batch, context};
    const at::Tensor embeddings = pooled(hidden_rows(pass, first_places(batch)));
    const at::Tensor scores = detail::linear(embeddings, next_sentence_);
    return {{"embeddings", embeddings.to(at::kFloat)},
            {"next_sentence", at::softmax(at_least_fp32(scores), 1).to(at::kFloat)}};
}

detail::CrossEntropy BertForPreTraining::masked_tokens(const at::Tensor& x,
                                                       const ForwardPass& pass) const {
    return detail::linear_cross_entropy(
        normed_factors(linear_activation(x, transform_), transform_norm_),
        decoder_,
        pass.batch.tensors.at("masked_labels"),
        pass.count_correct());
}

detail::CrossEntropy BertForPreTraining::next_sentence(const at::Tensor& x,
                                                       const ForwardPass& pass) const {
    return detail::linear_cross_entropy(pooled(x),
                                        next_sentence_,
                                        pass.batch.tensors.at("next_sentence_labels"),
                                        pass.count_correct());
}

}  // namespace

std::shared_ptr<Model> make_bert(const BertConfig& config,
                                 std::vector<CompanionFile> text_files,
                                 std::function<at::Tensor()> decoder_bias) {
    return std::make_shared<BertForPreTraining>(
        config, std::move(text_files), std::move(decoder_bias));
}

}  // namespace hetseq
