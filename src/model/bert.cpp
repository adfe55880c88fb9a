#include "hetseq/model/bert.hpp"

#include <utility>

#include <ATen/ATen.h>

#include "bert_encoder.hpp"
#include "parameter_tree.hpp"

namespace hetseq {

namespace {

using detail::Affine;
using detail::ForwardPass;

class BertForPreTraining final : public detail::BertEncoder {
public:
    BertForPreTraining(const BertConfig& config, std::vector<CompanionFile> text_files);

    std::vector<std::string> loss_terms() const override { return {"mlm", "nsp"}; }
    std::vector<MetricSchema> metrics() const override {
        return {{"mlm_accuracy", 0}, {"nsp_accuracy", 1}};
    }
    std::map<std::string, std::string> tensor_aliases() const override;
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override;
    bool predicts() const override { return true; }
    std::vector<Prediction> predict(const MicroBatch& batch) override;

private:
    detail::CrossEntropy masked_tokens(const at::Tensor& x, const ForwardPass& pass) const;
    detail::CrossEntropy next_sentence(const at::Tensor& x, const ForwardPass& pass) const;

    Affine next_sentence_;  // (2, H)
    Affine transform_, transform_norm_;
    at::Tensor decoder_bias_;  // (V); the decoder is the word embedding
};

BertForPreTraining::BertForPreTraining(const BertConfig& config,
                                       std::vector<CompanionFile> text_files)
    : BertEncoder{config, detail::BertPooler::with, std::move(text_files)} {
    const std::int64_t hidden = config.hidden_size;
    next_sentence_ = add_linear("cls.seq_relationship.", 2, hidden);
    transform_ = add_linear("cls.predictions.transform.dense.", hidden, hidden);
    transform_norm_ = add_norm("cls.predictions.transform.LayerNorm.");
    decoder_bias_ = detail::register_by_path(*this, "cls.predictions.bias", {config.vocab_size});
}

// Some versions of transformers write the tied decoder, others do not.
std::map<std::string, std::string> BertForPreTraining::tensor_aliases() const {
    std::map<std::string, std::string> aliases = BertEncoder::tensor_aliases();
    aliases["cls.predictions.decoder.weight"] = "bert.embeddings.word_embeddings.weight";
    aliases["cls.predictions.decoder.bias"] = "cls.predictions.bias";
    return aliases;
}

ForwardResult BertForPreTraining::forward(const MicroBatch& batch, const ForwardContext& context) {
    ForwardPass pass{batch, context};
    const at::Tensor x = hidden_states(pass);
    const detail::CrossEntropy mlm = masked_tokens(x, pass), nsp = next_sentence(x, pass);
    ForwardResult result;
    result.losses = {mlm.loss, nsp.loss};
    if (context.mode == Mode::evaluate)
        result.metrics = {mlm.correct, nsp.correct};
    return result;
}

std::vector<Prediction> BertForPreTraining::predict(const MicroBatch& batch) {
    const ForwardContext context{.mode = Mode::evaluate};
    ForwardPass pass{batch, context};
    const at::Tensor embeddings = pooled(hidden_states(pass));
    const at::Tensor scores = at::linear(embeddings, next_sentence_.weight, next_sentence_.bias);
    return {{"embeddings", embeddings.to(at::kFloat)},
            {"next_sentence", at::softmax(scores, 1).to(at::kFloat)}};
}

detail::CrossEntropy BertForPreTraining::masked_tokens(const at::Tensor& x,
                                                       const ForwardPass& pass) const {
    const at::Tensor rows =
        x.flatten(0, 1).index_select(0, pass.batch.tensors.at("masked_positions"));  // (M, H)
    return detail::linear_cross_entropy(
        layer_norm(detail::linear_gelu(rows, transform_), transform_norm_),
        {word_embeddings(), decoder_bias_},
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

std::shared_ptr<Model> make_bert(const BertConfig& config, std::vector<CompanionFile> text_files) {
    return std::make_shared<BertForPreTraining>(config, std::move(text_files));
}

}  // namespace hetseq
