// 16 bits against fp64: the gradients of models, with initial and with trained weights.
#include "hetseq/model/autocast.hpp"

#include <cstdio>
#include <memory>

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "hetseq/model/init.hpp"
#include "hetseq/model/mnist_cnn.hpp"

#include "gpu.hpp"
#include "model/small_models.hpp"

namespace hetseq {
namespace {

using test::ModelCase, test::images, test::pairs, test::samples, test::small_bert,
    test::small_transformer, test::small_transformer_with, test::texts;

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

struct PrecisionCase {
    ModelCase model;
    double bf16, fp16;  // bounds, those of docs/precision.md
};

void PrintTo(const PrecisionCase& one, std::ostream* out) {
    *out << one.model.name;
}

// Sizes of micro-batches.
using Cut = std::vector<std::int64_t>;
const std::vector<Cut> cuts{{measured}, {1, 1, 1, 1, 1, 1}, {2, 4}};

/// Roundings of each sample's gradient are what a device adds, so the sum of these gradients' norms
/// measures it: the gradient itself may be small where they cancel.
class PrecisionTest : public testing::TestWithParam<PrecisionCase> {
protected:
    PrecisionTest() : model_{GetParam().model.make()} {
        initialise_parameters(*model_, 3);
        model_->to(at::kCPU, Precision::fp64);
    }

    // First of all, and be it for 0 steps: it finds the exact gradient, too.
    void train_for(int steps) {
        const ModelCase& model = GetParam().model;
        train(*model_, model.batch(measured, samples - measured), steps);
        exact_ = gradient_of(*model_, model.batch(0, measured));
        norms_ = 0;
        for (std::int64_t i = 0; i < measured; ++i)
            norms_ += gradient_of(*model_, model.batch(i, 1)).norm().item<double>();
    }

    // In micro-batches of these sizes.
    at::Tensor gradient(at::Device device, Precision precision, const Cut& cut) {
        model_->to(device, precision);
        at::Tensor sum = at::zeros_like(exact_);
        std::int64_t begin = 0;
        for (const std::int64_t count : cut) {
            sum += gradient_of(*model_, test::on(device, GetParam().model.batch(begin, count)));
            begin += count;
        }
        model_->to(at::kCPU, Precision::fp64);
        return sum;
    }

    // The norm of what rounding changes in the gradient of all samples, relative to that sum.
    double error(const at::Tensor& gradient) const { return relative(gradient - exact_); }
    double relative(const at::Tensor& difference) const {
        return difference.norm().item<double>() / norms_;
    }

    // However the samples are cut, the gradient is near the exact one, and near that of the whole.
    void expect_within(double bound, at::Device device, Precision precision) {
        at::Tensor whole;
        for (const Cut& cut : cuts) {
            const at::Tensor rounded = gradient(device, precision, cut);
            whole = whole.defined() ? whole : rounded;
            const double off = error(rounded), moved = relative(rounded - whole);
            std::printf("%s, %s, micro-batches: %zu, error %.2g, by the cut %.2g\n",
                        GetParam().model.name.c_str(),
                        to_string(precision).c_str(),
                        cut.size(),
                        off,
                        moved);

            EXPECT_LT(off, bound) << cut.size();
            EXPECT_GT(off, bound / 1000);  // it did compute in 16 bits
            EXPECT_LT(moved, bound) << cut.size();
        }
    }

    std::shared_ptr<Model> model_;

private:
    at::Tensor exact_;  // the gradient of all samples in fp64
    double norms_ = 0;  // the samples' gradients' norms, added up
};

TEST_P(PrecisionTest, InBf16OnACpuTheGradientIsWithinItsBound) {
    for (const int steps : {0, 20}) {
        train_for(steps);
        expect_within(GetParam().bf16, at::kCPU, Precision::bf16);
    }
    EXPECT_LT(error(gradient(at::kCPU, Precision::fp32, cuts.front())), 1e-6);
}

TEST_P(PrecisionTest, On16BitsOfAGpuTheGradientIsWithinItsBound) {
    HETSEQ_NEEDS_GPU();
    for (const int steps : {0, 20}) {
        train_for(steps);
        expect_within(GetParam().bf16, test::gpu(), Precision::bf16);
        expect_within(GetParam().fp16, test::gpu(), Precision::fp16);
    }
}

std::shared_ptr<Model> small_gelu_transformer() {
    return small_transformer_with(TransformerConfig::Activation::gelu);
}

// Rounding switches units on or off whose input of a ReLU is near 0, with their whole gradient. So
// a Transformer with ReLU has bounds of its own.
INSTANTIATE_TEST_SUITE_P(
    Models,
    PrecisionTest,
    testing::Values(PrecisionCase{{"Mnist", [] { return make_mnist_cnn(); }, images}, 1e-2, 2e-3},
                    PrecisionCase{{"Bert", small_bert, texts}, 1e-2, 2e-3},
                    PrecisionCase{{"GeluTransformer", small_gelu_transformer, pairs}, 1e-2, 2e-3},
                    PrecisionCase{{"Transformer", small_transformer, pairs}, 3e-2, 1.5e-2}),
    [](const auto& info) { return info.param.model.name; });

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
