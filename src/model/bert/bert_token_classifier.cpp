#include <tuple>
#include <utility>

#include <ATen/ATen.h>

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
    ForwardResult forward(const MicroBatch& batch, const ForwardContext& context) override;
    std::vector<Prediction> predict(const MicroBatch& batch) override;

private:
    at::Tensor word_logits(ForwardPass& pass) const;  // (N, labels)
};

at::Tensor BertForTokenClassification::word_logits(ForwardPass& pass) const {
    const at::Tensor& places = pass.batch.tensors.at("word_positions");
    const at::Tensor rows = hidden_rows(pass, places);
    return logits(rows, detail::TokenRows{pass.batch}.of_places(next_dropout(pass), places));
}

ForwardResult BertForTokenClassification::forward(const MicroBatch& batch,
                                                  const ForwardContext& context) {
    ForwardPass pass{batch, context};
    const at::Tensor scores = word_logits(pass);
    const at::Tensor& labels = batch.tensors.at("labels");
    ForwardResult result;
    result.losses = {loss(scores, labels)};
    if (context.mode == Mode::evaluate) {
        result.output = scores.detach().argmax(1);
        result.metrics = {result.output.eq(labels).sum()};
    }
    return result;
}

std::vector<Prediction> BertForTokenClassification::predict(const MicroBatch& batch) {
    const ForwardContext context{.mode = Mode::evaluate};
    ForwardPass pass{batch, context};
    const auto [probabilities, labels] = word_logits(pass).softmax(1).max(1);
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
