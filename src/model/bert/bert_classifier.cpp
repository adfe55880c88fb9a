#include "bert_classifier.hpp"

#include <cmath>
#include <utility>

#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/json.hpp"
#include "hetseq/model/autocast.hpp"

#include "model/files/model_config_file.hpp"
#include <nlohmann/json.hpp>

namespace hetseq::detail {

namespace {

const std::string classifier_prefix = "classifier.";

void check_setup(const BertConfig& config, const BertClassifierSetup& setup) {
    if (setup.labels.empty())
        throw BadConfig("the classifier to be made has no labels");
    if (!setup.class_weights.empty() && setup.class_weights.size() != setup.labels.size())
        throw BadConfig(std::to_string(setup.class_weights.size()) + " class weights",
                        "there are " + std::to_string(setup.labels.size()) + " labels",
                        "give one for each");
    if (setup.frozen_layers > config.layers)
        throw BadConfig("--freeze-layers " + std::to_string(setup.frozen_layers),
                        "the network has " + std::to_string(config.layers) + " layers",
                        "give at most as many");
}

}  // namespace

BertClassifier::BertClassifier(const BertConfig& config,
                               BertPooler pooler,
                               std::string architecture,
                               BertClassifierSetup setup)
    : BertEncoder{config, pooler, setup.text_files},
      architecture_{std::move(architecture)},
      setup_{std::move(setup)} {
    check_setup(config, setup_);
    classifier_ = add_linear(classifier_prefix, std::ssize(setup_.labels), config.hidden_size);
    if (!setup_.class_weights.empty())
        class_weights_ = at::tensor(setup_.class_weights, at::kDouble);
    freeze();
}

void BertClassifier::freeze() {
    if (setup_.frozen_layers < 0)
        return;
    for (const NamedTensor& parameter : named_parameters())
        if (std::cmp_less_equal(unit_of(parameter.name), setup_.frozen_layers))
            parameter.tensor.set_requires_grad(false);
}

std::unique_ptr<CorpusScorer> BertClassifier::corpus_scorer() {
    return setup_.make_scorer ? setup_.make_scorer() : nullptr;
}

double BertClassifier::learning_rate_factor(const std::string& parameter_name) const {
    return std::pow(setup_.layer_decay, static_cast<double>(head_unit() - unit_of(parameter_name)));
}

std::string BertClassifier::config_json() const {
    auto root = parse_json<nlohmann::ordered_json>(BertEncoder::config_json());
    root["architectures"] = {architecture_};
    for (std::size_t i = 0; i < setup_.labels.size(); ++i) {
        root["id2label"][std::to_string(i)] = setup_.labels[i];
        root["label2id"][setup_.labels[i]] = i;
    }
    return json_text(root, 2) + "\n";
}

bool BertClassifier::is_new_head(const std::string& tensor_name) const {
    return setup_.new_head && tensor_name.starts_with(classifier_prefix);
}

Dropout BertClassifier::next_dropout(ForwardPass& pass) const {
    return pass.next_dropout(config().classifier_dropout.value_or(config().hidden_dropout));
}

at::Tensor BertClassifier::logits(const at::Tensor& rows, const Dropout& dropout) const {
    return at_least_fp32(linear(dropped(rows, dropout), classifier_));
}

at::Tensor BertClassifier::loss(const at::Tensor& scores, const at::Tensor& labels) const {
    const at::Tensor weights =
        class_weights_.defined() ? class_weights_.to(scores.options()) : at::Tensor{};
    return at::cross_entropy_loss(scores, labels, weights, at::Reduction::Sum);
}

}  // namespace hetseq::detail

namespace hetseq {

namespace {

std::string nameless_label(std::size_t number) {
    return "LABEL_" + std::to_string(number);
}

}  // namespace

bool StoredClassifier::nameless() const {
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] != nameless_label(i))
            return false;
    return true;
}

StoredClassifier read_stored_classifier(const std::filesystem::path& config_json) {
    StoredClassifier stored;
    const detail::ModelConfigFile file{config_json, "a BERT", "tiny, base"};
    file.read_first("architectures", stored.architecture);
    file.read("id2label", stored.labels);
    file.read("problem_type", stored.problem);
    if (stored.labels.empty())
        stored.labels = {nameless_label(0), nameless_label(1)};
    return stored;
}

}  // namespace hetseq
