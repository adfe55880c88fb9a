#include <tuple>
#include <utility>

#include <ATen/core/Tensor.h>

#include "hetseq/model/bert/bert_classifiers.hpp"

#include "bert_classifier.hpp"

namespace hetseq {

namespace {

using detail::ForwardPass;

class BertForTokenClassification final : public detail::BertClassifier {
public:
    BertForTokenClassification(const BertConfig& config, BertClassifierSetup setup)
        : BertClassifier{config, detail::BertPooler::without, token_classifier, std::move(setup)} {}

    std::vector<std::string> loss_terms() const override { return {"nll"}; }
    std::vector<MetricSchema> metrics() const override { return {{"accuracy", 0}}; }
    std::vector<Prediction> predict(const MicroBatch& batch) override;

private:
    at::Tensor places(const MicroBatch& batch) const override {
        return batch.tensors.at("word_positions");
    }
    ForwardResult result(const at::Tensor& rows, ForwardPass& pass) const override;
    /// (N, labels) of the hidden states (N, H) of the words' first pieces
    at::Tensor word_logits(const at::Tensor& rows, ForwardPass& pass) const;
};

at::Tensor BertForTokenClassification::word_logits(const at::Tensor& rows,
                                                   ForwardPass& pass) const {
    const detail::Dropout dropout = next_dropout(pass);
    return logits(rows, detail::TokenRows{pass.batch}.of_places(dropout, places(pass.batch)));
}

ForwardResult BertForTokenClassification::result(const at::Tensor& rows, ForwardPass& pass) const {
    const at::Tensor scores = word_logits(rows, pass);
    const at::Tensor& labels = pass.batch.tensors.at("labels");
    ForwardResult result;
    result.losses = {loss(scores, labels)};
    if (pass.context.mode == Mode::evaluate) {
        result.output = scores.detach().argmax(1);
        result.metrics = {result.output.eq(labels).sum()};
    }
    return result;
}

std::vector<Prediction> BertForTokenClassification::predict(const MicroBatch& batch) {
    const ForwardContext context{.mode = Mode::evaluate};
    ForwardPass pass{batch, context};
    const at::Tensor rows = hidden_rows(pass, places(batch));
    const auto [probabilities, labels] = word_logits(rows, pass).softmax(1).max(1);
    const at::Tensor& counts = batch.tensors.at("word_counts");
    return {{"labels", labels.to(at::kInt), counts},
            {"probabilities", probabilities.to(at::kFloat), counts}};
}

}  // namespace

std::shared_ptr<Model> make_bert_token_classifier(const BertConfig& config,
                                                  BertClassifierSetup setup) {
    return std::make_shared<BertForTokenClassification>(config, std::move(setup));
}

}  // namespace hetseq
