#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/model/bert/bert_classifiers.hpp"

#include "bert_classifier.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {

namespace {

using detail::ForwardPass;

class BertForSequenceClassification final : public detail::BertClassifier {
public:
    BertForSequenceClassification(const BertConfig& config,
                                  BertClassifierSetup setup,
                                  SequenceTarget target)
        : BertClassifier{config, detail::BertPooler::with, sequence_classifier, std::move(setup)},
          target_{target} {}

    std::vector<std::string> loss_terms() const override { return {is_number() ? "mse" : "nll"}; }
    std::vector<MetricSchema> metrics() const override {
        return is_number() ? std::vector<MetricSchema>{}
                           : std::vector<MetricSchema>{{"accuracy", 0}};
    }
    std::string config_json() const override;
    std::vector<Prediction> predict(const MicroBatch& batch) override;

private:
    bool is_number() const { return target_ == SequenceTarget::number; }
    at::Tensor places(const MicroBatch& batch) const override { return first_places(batch); }
    ForwardResult result(const at::Tensor& rows, ForwardPass& pass) const override;
    /// (n, labels) of the first tokens' hidden states (n, H)
    at::Tensor sequence_logits(const at::Tensor& rows, ForwardPass& pass) const {
        return logits(pooled(rows), next_dropout(pass));
    }

    SequenceTarget target_;
};

std::string BertForSequenceClassification::config_json() const {
    auto root = parse_json<nlohmann::ordered_json>(BertClassifier::config_json());
    root["problem_type"] = is_number() ? "regression" : "single_label_classification";
    return json_text(root, 2) + "\n";
}

ForwardResult BertForSequenceClassification::result(const at::Tensor& rows,
                                                    ForwardPass& pass) const {
    const at::Tensor scores = sequence_logits(rows, pass);
    const at::Tensor& labels = pass.batch.tensors.at("labels");
    const bool evaluates = pass.context.mode == Mode::evaluate;
    ForwardResult result;
    if (is_number()) {
        const at::Tensor numbers = scores.squeeze(1);
        result.losses = {(numbers - labels.to(numbers.scalar_type())).square().sum()};
        if (evaluates)
            result.output = numbers.detach();
        return result;
    }
    result.losses = {loss(scores, labels)};
    if (evaluates) {
        result.output = scores.detach().argmax(1);
        result.metrics = {result.output.eq(labels).sum()};
    }
    return result;
}

std::vector<Prediction> BertForSequenceClassification::predict(const MicroBatch& batch) {
    const ForwardContext context{.mode = Mode::evaluate};
    ForwardPass pass{batch, context};
    const at::Tensor scores = sequence_logits(hidden_rows(pass, places(batch)), pass);
    if (is_number())
        return {{"numbers", scores.squeeze(1).to(at::kFloat)}};
    const at::Tensor probabilities = scores.softmax(1);
    return {{"labels", probabilities.argmax(1).to(at::kInt)},
            {"probabilities", probabilities.to(at::kFloat)}};
}

}  // namespace

std::shared_ptr<Model> make_bert_sequence_classifier(const BertConfig& config,
                                                     BertClassifierSetup setup,
                                                     SequenceTarget target) {
    if (target == SequenceTarget::number && setup.labels.size() != 1)
        throw BadConfig("a number is predicted and " + std::to_string(setup.labels.size()) +
                        " labels are named");
    return std::make_shared<BertForSequenceClassification>(config, std::move(setup), target);
}

}  // namespace hetseq
