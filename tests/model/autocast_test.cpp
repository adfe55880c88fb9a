// 16 bits against fp64: the gradients of models, with initial and with trained weights.
#include "hetseq/model/autocast.hpp"

#include <cstdio>
#include <memory>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "hetseq/model/init.hpp"
#include "hetseq/model/mnist_cnn.hpp"

#include "gpu.hpp"
#include "model/small_models.hpp"

namespace hetseq {
namespace {

using test::ModelCase, test::images, test::pairs, test::samples, test::small_bert,
    test::small_transformer, test::texts;

constexpr std::int64_t measured = 6;  // the first samples: the others train

// All gradients as one vector in fp64 on the CPU.
at::Tensor gradient_of(Model& model, const MicroBatch& batch, const ForwardContext& context = {}) {
    at::Tensor sum;
    for (const at::Tensor& loss : run_forward(model, batch, context).losses)
        sum = sum.defined() ? sum + loss : loss;
    std::vector<at::Tensor> flat;
    const auto parameters = model.parameters();
    const auto gradients = torch::autograd::grad({sum}, parameters, {}, {}, false, true);
    for (std::size_t i = 0; i < parameters.size(); ++i)
        flat.push_back((gradients[i].defined() ? gradients[i] : at::zeros_like(parameters[i]))
                           .flatten()
                           .to(at::kCPU, at::kDouble));
    return at::cat(flat);
}

// Steps of gradient descent on one batch, in fp64 on the CPU.
void train(Model& model, const MicroBatch& batch, int steps) {
    const auto parameters = model.parameters();
    for (int step = 0; step < steps; ++step) {
        const at::Tensor gradient = gradient_of(model, batch);
        const at::NoGradGuard no_grad;
        const double factor = 0.1 / gradient.norm().item<double>();
        std::int64_t begin = 0;
        for (const at::Tensor& parameter : parameters) {
            const at::Tensor part = gradient.narrow(0, begin, parameter.numel());
            parameter.sub_(part.view_as(parameter), factor);
            begin += parameter.numel();
        }
    }
}

/// Roundings of each sample's gradient are what a device adds, so the sum of these gradients' norms
/// measures it: the gradient itself may be small where they cancel.
class PrecisionTest : public testing::TestWithParam<ModelCase> {
protected:
    PrecisionTest() : model_{GetParam().make()} {
        initialise_parameters(*model_, 3);
        model_->to(at::kCPU, Precision::fp64);
    }

    void train_for(int steps) {
        train(*model_, GetParam().batch(measured, samples - measured), steps);
    }

    // The norm of what `precision` changes in the gradient of all samples, relative to that sum.
    double error(at::Device device, Precision precision) {
        const MicroBatch all = GetParam().batch(0, measured);
        const at::Tensor exact = gradient_of(*model_, all);
        double norms = 0;
        for (std::int64_t i = 0; i < measured; ++i)
            norms += gradient_of(*model_, GetParam().batch(i, 1)).norm().item<double>();
        model_->to(device, precision);
        const at::Tensor rounded = gradient_of(*model_, test::on(device, all));
        model_->to(at::kCPU, Precision::fp64);
        const double result = (rounded - exact).norm().item<double>() / norms;
        std::printf("%s %s: %.2g\n", GetParam().name.c_str(), to_string(precision).c_str(), result);
        return result;
    }

    std::shared_ptr<Model> model_;
};

constexpr double of_bf16 = 5e-2, of_fp16 = 1e-2, of_fp32 = 1e-6;  // docs/precision.md

TEST_P(PrecisionTest, InBf16OnACpuTheGradientIsWithinItsBound) {
    const double initial = error(at::kCPU, Precision::bf16);
    train_for(20);
    const double trained = error(at::kCPU, Precision::bf16);

    for (const double one : {initial, trained}) {
        EXPECT_LT(one, of_bf16);
        EXPECT_GT(one, of_bf16 / 1000);  // it did compute in 16 bits
    }
    EXPECT_LT(error(at::kCPU, Precision::fp32), of_fp32);
}

TEST_P(PrecisionTest, On16BitsOfAGpuTheGradientIsWithinItsBound) {
    HETSEQ_NEEDS_GPU();
    for (const int steps : {0, 20}) {
        train_for(steps);
        const double bf16 = error(test::gpu(), Precision::bf16);
        const double fp16 = error(test::gpu(), Precision::fp16);

        EXPECT_LT(bf16, of_bf16);
        EXPECT_GT(bf16, of_bf16 / 1000);
        EXPECT_LT(fp16, of_fp16);
        EXPECT_GT(fp16, of_fp16 / 1000);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    PrecisionTest,
    testing::Values(ModelCase{"Mnist", [] { return make_mnist_cnn(); }, images},
                    ModelCase{"Bert", small_bert, texts},
                    ModelCase{"Transformer", small_transformer, pairs}),
    test::name_of);

// The gradients of biases where nothing else trains.
std::vector<at::Tensor> gradients_of_biases(Precision precision) {
    const auto model = small_bert();
    initialise_parameters(*model, 1);
    std::vector<at::Tensor> biases;
    model->to(test::gpu(), precision);
    for (const auto& [name, parameter] : model->named_parameters()) {
        at::Tensor own = parameter;
        own.set_requires_grad(name.ends_with("dense.bias"));
        if (own.requires_grad())
            biases.push_back(own);
    }
    const MicroBatch batch = test::on(test::gpu(), texts(0, measured));
    const ForwardResult result = run_forward(*model, batch, {.seed = 3});
    (result.losses[0] + result.losses[1]).backward();
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& bias : biases)
        gradients.push_back(bias.grad().cpu());
    return gradients;
}

TEST(AutocastTest, On16BitsOfAGpuBiasesTrainWhereWeightsAreFrozen) {
    HETSEQ_NEEDS_GPU();
    const auto wide = gradients_of_biases(Precision::fp32);
    const auto narrow = gradients_of_biases(Precision::bf16);
    ASSERT_EQ(wide.size(), narrow.size());
    ASSERT_GT(wide.size(), 6U);
    for (std::size_t i = 0; i < wide.size(); ++i)
        EXPECT_LT((wide[i] - narrow[i]).norm().item<double>(), 0.05 * wide[i].norm().item<double>())
            << i;
}

TEST(AutocastTest, IsThereWhileTheGuardLives) {
    const at::Tensor x = at::ones({2, 3});
    const auto product_type = [&] { return at::mm(x, x.t()).scalar_type(); };
    {
        const Autocast outer{{Precision::bf16, at::kCPU}};
        EXPECT_EQ(product_type(), at::kBFloat16);
        {
            const Autocast nothing{{Precision::fp32, at::kCPU}};
            EXPECT_EQ(product_type(), at::kBFloat16);
        }
        EXPECT_EQ(product_type(), at::kBFloat16);
    }
    EXPECT_EQ(product_type(), at::kFloat);
    EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

// Another forward sees the parameters as they are then, not as they were cast before.
TEST(AutocastTest, KeepsNoCastOfAParameter) {
    at::Tensor weight = at::ones({2, 2}).requires_grad_();
    const auto sum = [&] {
        const Autocast autocast{{Precision::bf16, at::kCPU}};
        return at::mm(at::ones({2, 2}), weight).sum().item<double>();
    };
    EXPECT_EQ(sum(), 8);
    {
        const at::NoGradGuard no_grad;
        weight.mul_(2);
    }

    EXPECT_EQ(sum(), 16);
}

TEST(AutocastTest, LossesAreInFp32) {
    const auto model = make_mnist_cnn();
    initialise_parameters(*model, 1);
    model->to(at::kCPU, Precision::bf16);
    MicroBatch batch = images(0, samples);

    EXPECT_EQ(run_forward(*model, batch, {}).losses[0].scalar_type(), at::kFloat);
    EXPECT_EQ(model->parameters()[0].scalar_type(), at::kFloat);
}

// In bf16 the logarithm of a probability near 1 would be 0 or a multiple of 0.004.
TEST(AutocastTest, ProbabilitiesOfASureModelAreAsFineAsFp32) {
    const auto model = make_mnist_cnn();
    initialise_parameters(*model, 1);
    const std::vector<NamedTensor> stored = model->stored_tensors();
    for (const NamedTensor& parameter : stored)
        if (parameter.name.starts_with("fc2."))
            parameter.tensor.detach().mul_(30);
    model->to(at::kCPU, Precision::bf16);

    const std::vector<Prediction> predictions = run_predict(*model, images(0, samples));

    EXPECT_EQ(predictions[0].values.scalar_type(), at::kFloat);
    EXPECT_LT((predictions[0].values.sum(1) - 1).abs().max().item<double>(), 1e-6);
    EXPECT_GT(predictions[0].values.max().item<double>(), 0.5);
}

}  // namespace
}  // namespace hetseq
