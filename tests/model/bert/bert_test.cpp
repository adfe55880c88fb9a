#include "hetseq/model/bert/bert.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/loading/padded_rows.hpp"
#include "hetseq/model/init.hpp"

#include "model/bert_reference.hpp"
#include "model/bert_rows.hpp"
#include "model/formula.hpp"
#include "util/temporary_folder.hpp"
#include <nlohmann/json.hpp>

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

TEST(BertTest, LossesAndGradientsAreThoseOfTransformersForEachOption) {
    const json variants =
        json::parse(std::ifstream("tests/reference/bert_variants.json"))["variants"];
    const BertRows rows = BertRows::from_json(reference()["generated"]["rows"]);
    ASSERT_FALSE(variants.empty());
    for (const json& expected : variants) {
        SCOPED_TRACE(expected["options"].dump());
        const test::TemporaryFolder folder;
        folder.write("config.json", expected["config"].dump());
        const BertConfig config = test::without_dropout(read_bert_config(folder / "config.json"));

        expect_reference(*formula_model(config, at::kDouble), rows, expected, 1e-10);
    }
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

void expect_close(const std::vector<at::Tensor>& values,
                  const std::vector<at::Tensor>& expected,
                  double tolerance) {
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_TRUE(values[i].allclose(expected[i], tolerance, tolerance))
            << i << ": " << (values[i] - expected[i]).abs().max();
}

/// The same, but nothing says which tokens are padding before they are computed.
MicroBatch padded(MicroBatch batch) {
    batch.row_lengths.clear();
    batch.tensors.erase("token_places");
    return batch;
}

/// As the loader makes it of rows of unequal lengths: padded to the longest.
MicroBatch ragged(MicroBatch batch) {
    const std::int64_t width = batch.tensors["input_ids"].size(1);
    const std::int64_t longest =
        *std::max_element(batch.row_lengths.begin(), batch.row_lengths.end());
    for (const char* name : {"input_ids", "segment_ids", "attention_mask"})
        batch.tensors[name] = batch.tensors[name].narrow(1, 0, longest).contiguous();
    const at::Tensor places = batch.tensors["masked_positions"];
    batch.tensors["masked_positions"] =
        places.floor_divide(width) * longest + places.remainder(width);
    batch.tensors.erase("token_places");
    note_row_lengths(batch, batch.tensors["attention_mask"], batch.tensors["masked_positions"]);
    batch.padded_tokens = batch.samples * longest;
    return batch;
}

TEST(BertTest, WorkOnPaddingChangesNothing) {
    const MicroBatch batch = generated_rows().batch(0, 6);
    ASSERT_TRUE(batch.tensors.contains("token_places"));
    const auto model = formula_model(smallest(), at::kDouble);

    expect_close(gradients_of(*model, batch), gradients_of(*model, padded(batch)), 1e-12);
    expect_close(
        gradients_of(*model, ragged(batch)), gradients_of(*model, padded(ragged(batch))), 1e-12);
}

TEST(BertTest, TheLongestRowOfAMicroBatchChangesNothing) {
    const BertRows rows = generated_rows();
    const auto model = formula_model(smallest(), at::kDouble);

    const auto whole = gradients_of(*model, ragged(rows.batch(0, 6)));
    std::vector<at::Tensor> sum;
    for (std::int64_t i = 0; i < 6; ++i) {
        const auto part = gradients_of(*model, ragged(rows.batch(i, 1)));
        for (std::size_t k = 0; k < part.size(); ++k)
            if (sum.size() <= k)
                sum.push_back(part[k]);
            else
                sum[k] = sum[k] + part[k];
    }

    expect_close(sum, whole, 1e-12);
}

TEST(BertTest, PredictionsAreThoseOfPaddedRows) {
    const MicroBatch batch = generated_rows().batch(0, 6);
    const auto model = formula_model(smallest(), at::kDouble);

    const auto predictions = model->predict(batch), expected = model->predict(padded(batch));

    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(predictions[i].values.allclose(expected[i].values, 1e-6, 1e-6));
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

TEST(BertTest, TheDecodersBiasBeginsAsItIsGiven) {
    for (const bool ties_decoder : {true, false}) {
        BertConfig config = smallest();
        config.ties_decoder = ties_decoder;
        const at::Tensor given = at::arange(config.vocab_size, at::kDouble);
        const auto model = make_bert(config, {}, [&] { return given; });
        initialise_parameters(*model, 1);

        for (const auto& [name, tensor] : model->stored_tensors()) {
            if (name == (ties_decoder ? "cls.predictions.bias" : "cls.predictions.decoder.bias")) {
                EXPECT_TRUE(tensor.detach().to(at::kDouble).equal(given));
            } else if (name.ends_with("bias")) {
                EXPECT_TRUE(tensor.detach().eq(0).all().item<bool>()) << name;
            }
        }
    }
}

TEST(BertTest, AnUntiedDecoderHasItsWeightAndBias) {
    BertConfig config = smallest();
    config.ties_decoder = false;
    const auto model = make_bert(config), tied = make_bert(smallest());

    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const auto& [name, tensor] : model->stored_tensors())
        shapes[name] = tensor.sizes().vec();

    EXPECT_EQ(shapes.at("cls.predictions.decoder.weight"), (std::vector<std::int64_t>{97, 32}));
    EXPECT_EQ(shapes.at("cls.predictions.decoder.bias"), std::vector<std::int64_t>{97});
    EXPECT_EQ(shapes.count("cls.predictions.bias"), 0u);
    EXPECT_EQ(shapes.size(), tied->stored_tensors().size() + 1);
}

TEST(BertTest, OnlyMatricesDecay) {
    const auto model = make_bert(smallest());

    EXPECT_TRUE(model->decays("bert.encoder.layer.0.attention.self.qkv.weight"));
    EXPECT_FALSE(model->decays("bert.encoder.layer.0.attention.self.qkv.bias"));
    EXPECT_FALSE(model->decays("bert.embeddings.LayerNorm.weight"));
}

}  // namespace
}  // namespace hetseq
