#include "hetseq/model/bert/bert_classifiers.hpp"

#include <algorithm>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/init.hpp"

#include "model/bert_reference.hpp"
#include "model/bert_rows.hpp"
#include "model/formula.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using nlohmann::json;

const json& classifier_reference() {
    static const json root = json::parse(std::ifstream("tests/reference/bert_classifiers.json"));
    return root;
}

MicroBatch sequences() {
    const auto root = json::parse(std::ifstream("tests/reference/bert_losses.json"));
    const auto rows = test::BertRows::from_json(root["generated"]["rows"]);
    return rows.batch(0, rows.size());
}

/// With the labelled words of the reference, whose other tokens have the label -100.
MicroBatch tagged_sequences() {
    MicroBatch batch = sequences();
    std::vector<std::int64_t> positions, labels, counts;
    std::int64_t place = 0;
    for (const json& row : classifier_reference()["token"]["labels"]) {
        const std::size_t before = labels.size();
        for (const json& label : row) {
            if (label != -100) {
                positions.push_back(place);
                labels.push_back(label);
            }
            ++place;
        }
        counts.push_back(static_cast<std::int64_t>(labels.size() - before));
    }
    batch.tensors["word_positions"] = at::tensor(positions, at::kLong);
    batch.tensors["labels"] = at::tensor(labels, at::kLong);
    batch.tensors["word_counts"] = at::tensor(counts, at::kLong);
    return batch;
}

MicroBatch labelled_sequences() {
    MicroBatch batch = sequences();
    batch.tensors["labels"] = at::tensor(
        classifier_reference()["sequence"]["labels"].get<std::vector<std::int64_t>>(), at::kLong);
    return batch;
}

BertConfig reference_config() {
    return test::without_dropout(test::bert_config_of(classifier_reference()["config"]));
}

BertClassifierSetup five_labels() {
    return {.labels = {"O", "B-A", "I-A", "B-B", "I-B"}};
}

std::shared_ptr<Model> by_formula(std::shared_ptr<Model> model) {
    model->to(at::kDouble);
    test::fill_by_formula(*model);
    return model;
}

/// `count`: words or sequences.
void expect_transformers(Model& model, const MicroBatch& batch, const json& expected) {
    const auto count = static_cast<double>(batch.tensors.at("labels").numel());

    const at::Tensor loss = model.forward(batch, {}).losses.at(0) / count;
    loss.backward();
    const ForwardResult evaluated = model.forward(batch, {.mode = Mode::evaluate});

    EXPECT_NEAR(loss.item<double>(), expected["loss"].get<double>(), 1e-12);
    if (expected.contains("accuracy")) {
        EXPECT_NEAR(evaluated.metrics.at(0).item<double>() / count,
                    expected["accuracy"].get<double>(),
                    1e-12);
    }
    ASSERT_GT(expected["gradient_norms"].size(), 10U);
    for (const auto& [name, norm] : expected["gradient_norms"].items())
        EXPECT_NEAR(test::gradient_norm_of(model, name), norm.get<double>(), 1e-10) << name;
}

TEST(BertTokenClassifierTest, LossAccuracyAndGradientsAreThoseOfTransformers) {
    const auto model = by_formula(make_bert_token_classifier(reference_config(), five_labels()));

    expect_transformers(*model, tagged_sequences(), classifier_reference()["token"]);
}

TEST(BertTokenClassifierTest, ClassWeightsMultiplyLosses) {
    BertClassifierSetup setup = five_labels();
    setup.class_weights = classifier_reference()["class_weights"].get<std::vector<double>>();
    const auto model = by_formula(make_bert_token_classifier(reference_config(), setup));

    const auto loss = model->forward(tagged_sequences(), {}).losses.at(0).item<double>();

    EXPECT_NEAR(loss, classifier_reference()["token"]["weighted_sum"].get<double>(), 1e-10);
}

TEST(BertTokenClassifierTest, TheHeadHasADropoutOfItsOwn) {
    BertConfig config = reference_config();
    const auto losses = [&config] {
        const auto model = by_formula(make_bert_token_classifier(config, five_labels()));
        const at::NoGradGuard no_gradient;
        return std::pair{model->forward(tagged_sequences(), {}).losses.at(0).item<double>(),
                         model->forward(tagged_sequences(), {.mode = Mode::evaluate})
                             .losses.at(0)
                             .item<double>()};
    };

    const auto [trained, evaluated] = losses();
    config.classifier_dropout = 0.5;
    const auto [trained_with_dropout, evaluated_with_dropout] = losses();

    EXPECT_EQ(trained, evaluated);
    EXPECT_EQ(evaluated_with_dropout, evaluated);
    EXPECT_NE(trained_with_dropout, evaluated);
}

TEST(BertTokenClassifierTest, PredictsALabelForEachWordWithoutLabels) {
    const auto model = by_formula(make_bert_token_classifier(reference_config(), five_labels()));
    MicroBatch batch = tagged_sequences();
    const ForwardResult evaluated = model->forward(batch, {.mode = Mode::evaluate});
    batch.tensors.erase("labels");

    const std::vector<Prediction> predictions = model->predict(batch);

    ASSERT_EQ(predictions.size(), 2U);
    EXPECT_TRUE(predictions[0].values.to(at::kLong).equal(evaluated.output));
    EXPECT_TRUE(predictions[0].row_lengths.equal(batch.tensors.at("word_counts")));
    EXPECT_GE(predictions[1].values.min().item<double>(), 0.2);  // the largest of five
    EXPECT_LE(predictions[1].values.max().item<double>(), 1);
}

TEST(BertSequenceClassifierTest, LossAccuracyAndGradientsAreThoseOfTransformers) {
    const auto model = by_formula(make_bert_sequence_classifier(reference_config(), five_labels()));

    expect_transformers(*model, labelled_sequences(), classifier_reference()["sequence"]);
}

TEST(BertSequenceClassifierTest, RegressionIsThatOfTransformers) {
    const auto model = by_formula(make_bert_sequence_classifier(
        reference_config(), {.labels = {"score"}}, SequenceTarget::number));
    MicroBatch batch = sequences();
    batch.tensors["labels"] = at::tensor(
        classifier_reference()["regression"]["labels"].get<std::vector<double>>(), at::kDouble);

    expect_transformers(*model, batch, classifier_reference()["regression"]);
}

TEST(BertClassifierTest, FrozenLayersHaveNoGradientAndTheOthersHave) {
    BertClassifierSetup setup = five_labels();
    setup.frozen_layers = 1;
    const auto model = make_bert_token_classifier(reference_config(), setup);

    for (const auto& parameter : model->named_parameters()) {
        const std::string& name = parameter.name;
        const bool is_frozen =
            name.rfind("bert.embeddings.", 0) == 0 || name.rfind("bert.encoder.layer.0.", 0) == 0;
        EXPECT_EQ(parameter.tensor.requires_grad(), !is_frozen) << name;
    }
}

TEST(BertClassifierTest, LearningRatesDecayFromTheHeadDown) {
    BertClassifierSetup setup = five_labels();
    setup.layer_decay = 0.5;
    const auto model = make_bert_sequence_classifier(reference_config(), setup);

    EXPECT_EQ(model->learning_rate_factor("classifier.weight"), 1);
    EXPECT_EQ(model->learning_rate_factor("bert.pooler.dense.bias"), 1);
    EXPECT_EQ(model->learning_rate_factor("bert.encoder.layer.1.output.dense.weight"), 0.5);
    EXPECT_EQ(model->learning_rate_factor("bert.encoder.layer.0.attention.self.qkv.bias"), 0.25);
    EXPECT_EQ(model->learning_rate_factor("bert.embeddings.LayerNorm.weight"), 0.125);
}

TEST(BertClassifierTest, ConfigurationNamesTheClassesAsTransformersDoes) {
    const auto model = make_bert_token_classifier(reference_config(), five_labels());

    const json config = json::parse(model->config_json());

    EXPECT_EQ(config["architectures"], json({"BertForTokenClassification"}));
    EXPECT_EQ(config["id2label"]["3"], "B-B");
    EXPECT_EQ(config["label2id"]["I-B"], 4);
}

TEST(BertClassifierTest, RefusesWhatDoesNotFit) {
    const BertConfig config = reference_config();

    BertClassifierSetup weights = five_labels();
    weights.class_weights = {1, 2};
    BertClassifierSetup layers = five_labels();
    layers.frozen_layers = config.layers + 1;

    EXPECT_THROW(make_bert_token_classifier(config, {}), BadConfig);
    EXPECT_THROW(make_bert_token_classifier(config, weights), BadConfig);
    EXPECT_THROW(make_bert_token_classifier(config, layers), BadConfig);
    EXPECT_THROW(make_bert_sequence_classifier(config, five_labels(), SequenceTarget::number),
                 BadConfig);
}

}  // namespace
}  // namespace hetseq
