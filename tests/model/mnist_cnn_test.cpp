#include "hetseq/model/mnist_cnn.hpp"

#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/flatten.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "hetseq/model/init.hpp"

#include "model/formula.hpp"
#include "model/image_batch.hpp"
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

MicroBatch part(const MicroBatch& whole, std::int64_t begin, std::int64_t n) {
    MicroBatch batch;
    for (const auto& [name, tensor] : whole.tensors)
        batch.tensors[name] = tensor.narrow(0, begin, n);
    batch.sample_ids = whole.sample_ids.narrow(0, begin, n);
    batch.samples = batch.units = n;
    return batch;
}

std::shared_ptr<Model> double_model(const MnistCnnOptions& options = {}) {
    auto model = make_mnist_cnn(options);
    model->to(at::kDouble);
    initialise_parameters(*model, 1);
    return model;
}

// PyTorch's example, layer by layer.
at::Tensor reference_loss(Model& model, const MicroBatch& batch) {
    const auto p = model.named_parameters();
    at::Tensor x =
        at::relu(at::conv2d(batch.tensors.at("images"), p["conv1.weight"], p["conv1.bias"]));
    x = at::relu(at::conv2d(x, p["conv2.weight"], p["conv2.bias"]));
    x = at::flatten(at::max_pool2d(x, 2), 1);
    x = at::relu(at::linear(x, p["fc1.weight"], p["fc1.bias"]));
    x = at::log_softmax(at::linear(x, p["fc2.weight"], p["fc2.bias"]), 1);
    return at::nll_loss(x, batch.tensors.at("labels"), {}, at::Reduction::Sum);
}

TEST(MnistCnnTest, HasTheExamplesParameters) {
    const auto model = make_mnist_cnn();

    std::int64_t count = 0;
    for (const auto& parameter : model->parameters())
        count += parameter.numel();

    EXPECT_EQ(count, 1199882);
}

TEST(MnistCnnTest, EvaluationIsThePlainNetwork) {
    const auto model = double_model();
    const MicroBatch batch = test::image_batch(5);

    const ForwardResult result = model->forward(batch, {Mode::evaluate, 1, 0});

    EXPECT_NEAR(
        result.losses.at(0).item<double>(), reference_loss(*model, batch).item<double>(), 1e-10);
    EXPECT_EQ(result.metrics.size(), 1u);
}

TEST(MnistCnnTest, GradientsAreThoseOfThePlainNetwork) {
    const auto model = double_model({0, 0});
    const MicroBatch batch = test::image_batch(4);
    const std::vector<at::Tensor> parameters = model->parameters();

    const auto expected = torch::autograd::grad({reference_loss(*model, batch)}, parameters);
    const auto gradients =
        torch::autograd::grad({model->forward(batch, {}).losses.at(0)}, parameters);

    for (std::size_t i = 0; i < parameters.size(); ++i)
        EXPECT_TRUE(gradients[i].allclose(expected[i], 1e-10, 1e-12)) << i;
}

TEST(MnistCnnTest, SumOverMicroBatchesEqualsTheWholeBatchWithDropout) {
    const auto model = double_model();
    const MicroBatch batch = test::image_batch(7);
    const ForwardContext context{Mode::train, 3, 11};
    const std::vector<at::Tensor> parameters = model->parameters();

    const auto whole =
        torch::autograd::grad({model->forward(batch, context).losses.at(0)}, parameters);
    const auto first = torch::autograd::grad(
        {model->forward(part(batch, 0, 2), context).losses.at(0)}, parameters);
    const auto second = torch::autograd::grad(
        {model->forward(part(batch, 2, 5), context).losses.at(0)}, parameters);

    for (std::size_t i = 0; i < parameters.size(); ++i)
        EXPECT_TRUE(whole[i].allclose(first[i] + second[i], 1e-10, 1e-12)) << i;
}

TEST(MnistCnnTest, TrainingWithoutDropoutEqualsEvaluation) {
    const auto model = double_model({0, 0});
    const MicroBatch batch = test::image_batch(3);

    const double trained = model->forward(batch, {Mode::train, 1, 0}).losses.at(0).item<double>();
    const double evaluated =
        model->forward(batch, {Mode::evaluate, 1, 0}).losses.at(0).item<double>();

    EXPECT_EQ(trained, evaluated);
}

TEST(MnistCnnTest, DropoutChangesWithTheUpdate) {
    const auto model = double_model();
    const MicroBatch batch = test::image_batch(3);

    const double first = model->forward(batch, {Mode::train, 1, 0}).losses.at(0).item<double>();
    const double again = model->forward(batch, {Mode::train, 1, 0}).losses.at(0).item<double>();
    const double next = model->forward(batch, {Mode::train, 1, 1}).losses.at(0).item<double>();

    EXPECT_EQ(first, again);
    EXPECT_NE(first, next);
}

TEST(MnistCnnTest, AccuracyCountsTheLikeliestClass) {
    const auto model = double_model();
    MicroBatch batch = test::image_batch(6);
    const at::NoGradGuard no_grad;
    model->named_parameters()["fc2.weight"].zero_();
    model->named_parameters()["fc2.bias"].zero_();
    model->named_parameters()["fc2.bias"][4].fill_(1);
    batch.tensors["labels"] = at::tensor({4, 4, 1, 4, 0, 9}, at::kLong);

    const ForwardResult result = model->forward(batch, {Mode::evaluate, 1, 0});

    EXPECT_EQ(result.metrics.at(0).item<std::int64_t>(), 3);
}

// tests/reference/mnist_cnn.py
TEST(MnistCnnTest, LossAndGradientsAreThoseOfPyTorchsExample) {
    const auto expected = nlohmann::json::parse(std::ifstream("tests/reference/mnist_cnn.json"));
    for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-10}, {at::kFloat, 1e-4}}) {
        const auto model = make_mnist_cnn({0, 0});
        model->to(type);
        test::fill_by_formula(*model);
        const std::int64_t n = expected["images"];
        MicroBatch batch;
        batch.tensors["images"] = test::formula_uniform("images", {n, 1, 28, 28}).to(type);
        batch.tensors["labels"] =
            at::tensor(expected["labels"].get<std::vector<std::int64_t>>(), at::kLong);
        batch.sample_ids = at::arange(n, at::kLong);

        const at::Tensor loss = model->forward(batch, {}).losses[0];
        loss.backward();

        EXPECT_NEAR(loss.item<double>() / expected["loss"].get<double>(), 1, tolerance);
        for (const auto& [name, norm] : expected["gradient_norms"].items())
            EXPECT_NEAR(
                model->named_parameters()[name].grad().norm().item<double>() / norm.get<double>(),
                1,
                tolerance)
                << name;
    }
}

TEST(MnistCnnTest, OnlyWeightsDecay) {
    const auto model = make_mnist_cnn();

    EXPECT_TRUE(model->decays("conv1.weight"));
    EXPECT_FALSE(model->decays("conv1.bias"));
}

TEST(MnistCnnTest, PredictionsAreThoseOfTheEvaluationWithoutLabels) {
    const auto model = double_model();
    const MicroBatch batch = test::image_batch(7);
    MicroBatch unlabelled = batch;
    unlabelled.tensors.erase("labels");

    const std::vector<Prediction> predictions = model->predict(unlabelled);

    ASSERT_EQ(predictions.size(), 2u);
    EXPECT_EQ(predictions[0].name, "probabilities");
    EXPECT_EQ(predictions[0].values.scalar_type(), at::kFloat);
    EXPECT_TRUE(predictions[0].values.sum(1).allclose(at::ones({7}), 1e-6));
    EXPECT_EQ(predictions[1].name, "label");
    EXPECT_EQ(predictions[1].values.scalar_type(), at::kByte);
    const at::Tensor labels = batch.tensors.at("labels");
    const ForwardResult evaluated = model->forward(batch, {.mode = Mode::evaluate});
    EXPECT_EQ((predictions[1].values == labels).sum().item<std::int64_t>(),
              evaluated.metrics[0].item<std::int64_t>());
    const at::Tensor own = predictions[0].values.gather(1, labels.unsqueeze(1));
    EXPECT_NEAR(-own.log().sum().item<double>(), evaluated.losses[0].item<double>(), 1e-4);
}

}  // namespace
}  // namespace hetseq
