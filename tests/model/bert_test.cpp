#include "hetseq/model/bert.hpp"

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "hetseq/util/error.hpp"

#include "model/bert_reference.hpp"
#include "model/bert_rows.hpp"
#include "model/formula.hpp"
#include <nlohmann/json.hpp>

#include "hetseq/model/init.hpp"

namespace hetseq {
namespace {

using nlohmann::json;
using test::BertRows;

const json& reference() {
    static const json root = json::parse(std::ifstream("tests/reference/bert_losses.json"));
    return root;
}

std::shared_ptr<Model> formula_model(const BertConfig& config, at::ScalarType type) {
    auto model = make_bert(config);
    model->to(type);
    test::fill_by_formula(*model);
    return model;
}

struct Losses {
    double mlm = 0, nsp = 0;  // means
};

/// A few sequences at a time; the gradients of mlm + nsp are left in the model.
Losses mean_losses(Model& model, const BertRows& rows, std::int64_t micro_batch) {
    const auto weights = rows.weights();
    Losses losses;
    for (std::int64_t begin = 0; begin < rows.size(); begin += micro_batch) {
        const MicroBatch batch = rows.batch(begin, std::min(micro_batch, rows.size() - begin));
        const ForwardResult result = model.forward(batch, {});
        const at::Tensor mlm = result.losses[0] / weights[0], nsp = result.losses[1] / weights[1];
        (mlm + nsp).backward();
        losses.mlm += mlm.item<double>();
        losses.nsp += nsp.item<double>();
    }
    return losses;
}

void expect_reference(Model& model, const BertRows& rows, const json& expected, double tolerance) {
    const Losses losses = mean_losses(model, rows, 8);

    EXPECT_EQ(rows.weights()[0], expected["masked_tokens"].get<double>());
    EXPECT_NEAR(losses.mlm / expected["mlm"].get<double>(), 1, tolerance);
    EXPECT_NEAR(losses.nsp / expected["nsp"].get<double>(), 1, tolerance);
    // A key's bias shifts all scores of a query alike: its gradient is zero but for rounding.
    for (const auto& [name, norm] : expected["gradient_norms"].items())
        EXPECT_NEAR(test::gradient_norm_of(model, name),
                    norm.get<double>(),
                    tolerance * std::max(norm.get<double>(), 1e-3))
            << name;
}

TEST(BertTest, LossesAndGradientsAreThoseOfTransformersOnGeneratedSequences) {
    const json& expected = reference()["generated"];
    const BertRows rows = BertRows::from_json(expected["rows"]);
    const BertConfig config = test::without_dropout(test::bert_config_of(expected["config"]));

    expect_reference(*formula_model(config, at::kDouble), rows, expected, 1e-10);
    expect_reference(*formula_model(config, at::kFloat), rows, expected, 1e-4);
}

TEST(BertTest, LossesAndGradientsAreThoseOfTransformersOnNvidiasShards) {
    const json& shards = reference()["shards"];
    for (const auto& [file, expected] : shards["files"].items()) {
        const auto path = test::test_data() / "bert" / file;
        if (!std::filesystem::exists(path))
            GTEST_SKIP() << path << " is absent; set HETSEQ_TEST_DATA";
        const BertRows rows = BertRows::from_shard(path, shards["rows"]);

        expect_reference(
            *formula_model(test::without_dropout(test::bert_config_of(shards["config"])),
                           at::kFloat),
            rows,
            expected,
            1e-4);
    }
}

BertRows generated_rows() {
    return BertRows::from_json(reference()["generated"]["rows"]);
}

BertConfig smallest() {
    return test::bert_config_of(reference()["generated"]["config"]);
}

std::vector<at::Tensor> gradients_of(Model& model, const MicroBatch& batch) {
    for (auto& parameter : model.parameters())
        parameter.mutable_grad() = at::zeros_like(parameter);
    const ForwardResult result = model.forward(batch, {Mode::train, 7, 3});
    (result.losses[0] * 0.1 + result.losses[1] * 0.2).backward();
    std::vector<at::Tensor> gradients;
    for (auto& parameter : model.parameters())
        gradients.push_back(parameter.grad());
    return gradients;
}

TEST(BertTest, SumOverMicroBatchesEqualsTheWholeBatchWithDropout) {
    const BertRows rows = generated_rows();
    const auto model = formula_model(smallest(), at::kDouble);

    const auto whole = gradients_of(*model, rows.batch(0, 6));
    std::vector<at::Tensor> sum;
    for (const auto& [begin, n] : {std::pair{0, 1}, {1, 3}, {4, 2}}) {
        const auto part = gradients_of(*model, rows.batch(begin, n));
        for (std::size_t i = 0; i < part.size(); ++i)
            if (sum.size() <= i)
                sum.push_back(part[i]);
            else
                sum[i] = sum[i] + part[i];
    }

    for (std::size_t i = 0; i < whole.size(); ++i)
        EXPECT_TRUE(whole[i].allclose(sum[i], 1e-11, 1e-13))
            << i << ": " << (whole[i] - sum[i]).abs().max();
}

TEST(BertTest, DropoutChangesWithTheUpdateOnlyInTraining) {
    const MicroBatch batch = generated_rows().batch(0, 6);
    const auto model = formula_model(smallest(), at::kDouble);
    const auto mlm = [&](Mode mode, std::int64_t update) {
        return model->forward(batch, {mode, 1, update}).losses[0].item<double>();
    };

    EXPECT_EQ(mlm(Mode::train, 0), mlm(Mode::train, 0));
    EXPECT_NE(mlm(Mode::train, 0), mlm(Mode::train, 1));
    EXPECT_EQ(mlm(Mode::evaluate, 0), mlm(Mode::evaluate, 1));
    EXPECT_EQ(mlm(Mode::evaluate, 0),
              formula_model(test::without_dropout(smallest()), at::kDouble)
                  ->forward(batch, {Mode::train, 1, 0})
                  .losses[0]
                  .item<double>());
}

TEST(BertTest, NoMaskedTokenGivesAZeroLossWithAGradient) {
    MicroBatch batch = generated_rows().batch(3, 1);
    ASSERT_EQ(batch.tensors["masked_labels"].numel(), 0);
    const auto model = formula_model(smallest(), at::kDouble);

    const ForwardResult result = model->forward(batch, {});
    result.losses[0].backward();

    EXPECT_EQ(result.losses[0].item<double>(), 0);
}

TEST(BertTest, AnAbsentAttentionMaskMeansNoPadding) {
    MicroBatch batch = generated_rows().batch(0, 1);
    ASSERT_TRUE(batch.tensors["attention_mask"].all().item<bool>());
    const auto model = formula_model(test::without_dropout(smallest()), at::kDouble);
    const double with = model->forward(batch, {}).losses[0].item<double>();

    batch.tensors.erase("attention_mask");

    EXPECT_EQ(model->forward(batch, {}).losses[0].item<double>(), with);
}

TEST(BertTest, MetricsCountTheLikeliestTokensAndSentences) {
    const BertRows rows = generated_rows();
    const auto model = formula_model(smallest(), at::kDouble);
    {
        const at::NoGradGuard no_grad;
        model->named_parameters()["cls.predictions.bias"][5].fill_(1000);
        model->named_parameters()["cls.seq_relationship.bias"][1].fill_(1000);
    }
    MicroBatch batch = rows.batch(0, 6);
    batch.tensors["masked_labels"][0] = 5;
    const auto fives = batch.tensors["masked_labels"].eq(5).sum().item<std::int64_t>();
    const auto ones = batch.tensors["next_sentence_labels"].sum().item<std::int64_t>();

    const ForwardResult result = model->forward(batch, {Mode::evaluate, 1, 0});

    EXPECT_EQ(result.metrics.at(0).item<std::int64_t>(), fives);
    EXPECT_EQ(result.metrics.at(1).item<std::int64_t>(), ones);
    EXPECT_TRUE(model->forward(batch, {}).metrics.empty());
}

TEST(BertTest, StoredNamesAreHuggingFaces) {
    const auto model = make_bert(smallest());

    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const auto& [name, tensor] : model->stored_tensors())
        shapes[name] = tensor.sizes().vec();

    // Each parameter of transformers' model has a gradient in the reference.
    for (const auto& [name, norm] : reference()["generated"]["gradient_norms"].items())
        EXPECT_EQ(shapes.count(name), 1u) << name;
    EXPECT_EQ(shapes.size(), reference()["generated"]["gradient_norms"].size());
    EXPECT_EQ(shapes.at("bert.encoder.layer.0.attention.self.key.weight"),
              (std::vector<std::int64_t>{32, 32}));
}

// transformers' BertForPreTraining(BertConfig()) has 110,106,428 parameters.
TEST(BertTest, BaseHasTransformersNumberOfParameters) {
    const auto model = make_bert(bert_config("base"));

    std::int64_t count = 0;
    for (const auto& parameter : model->parameters())
        count += parameter.numel();

    EXPECT_EQ(count, 110106428);
}

TEST(BertTest, InitialValuesAreThoseOfThePaper) {
    BertConfig config = bert_config("tiny");
    const auto model = make_bert(config);
    initialise_parameters(*model, 1);

    for (const auto& [name, tensor] : model->stored_tensors()) {
        const at::Tensor values = tensor.detach().to(at::kDouble);
        if (name.find("LayerNorm.weight") != std::string::npos)
            EXPECT_TRUE(values.eq(1).all().item<bool>()) << name;
        else if (name.find("bias") != std::string::npos)
            EXPECT_TRUE(values.eq(0).all().item<bool>()) << name;
        else
            EXPECT_NEAR(values.pow(2).mean().sqrt().item<double>(),
                        0.02,
                        0.02 * 5 / std::sqrt(2.0 * static_cast<double>(values.numel())))
                << name;
    }
}

TEST(BertTest, OnlyMatricesDecay) {
    const auto model = make_bert(smallest());

    EXPECT_TRUE(model->decays("bert.encoder.layer.0.attention.self.qkv.weight"));
    EXPECT_FALSE(model->decays("bert.encoder.layer.0.attention.self.qkv.bias"));
    EXPECT_FALSE(model->decays("bert.embeddings.LayerNorm.weight"));
}

}  // namespace
}  // namespace hetseq
