#include "hetseq/model/init.hpp"

#include <cmath>
#include <utility>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/mnist_cnn.hpp"

#include "model/mixed_model.hpp"

namespace hetseq {
namespace {

at::Tensor parameter(const Model& model, const std::string& name) {
    return model.named_parameters()[name].detach().clone();
}

TEST(InitTest, SeedAloneFixesTheParameters) {
    const auto first = make_mnist_cnn(), second = make_mnist_cnn();
    at::manual_seed(1);
    initialise_parameters(*first, 7);
    at::manual_seed(2);
    initialise_parameters(*second, 7);

    for (const auto& item : first->named_parameters())
        EXPECT_TRUE(item.tensor.equal(parameter(*second, item.name))) << item.name;
}

TEST(InitTest, AnotherSeedGivesOtherParameters) {
    const auto first = make_mnist_cnn(), second = make_mnist_cnn();
    initialise_parameters(*first, 7);
    initialise_parameters(*second, 8);

    for (const auto& item : first->named_parameters())
        EXPECT_FALSE(item.tensor.equal(parameter(*second, item.name))) << item.name;
}

TEST(InitTest, DoublePrecisionHasTheSameValues) {
    const auto narrow = make_mnist_cnn(), wide = make_mnist_cnn();
    wide->to(at::kDouble);
    initialise_parameters(*narrow, 7);
    initialise_parameters(*wide, 7);

    for (const auto& item : narrow->named_parameters())
        EXPECT_TRUE(item.tensor.equal(parameter(*wide, item.name).to(at::kFloat)));
}

TEST(InitTest, BuffersKeepTheirValues) {
    test::MixedModel model;
    const test::MixedModel untouched;

    initialise_parameters(model, 7);

    EXPECT_FALSE(model.trained.equal(untouched.trained));
    EXPECT_FALSE(model.frozen.equal(untouched.frozen));
    EXPECT_TRUE(model.counts().equal(untouched.counts()));
    EXPECT_TRUE(model.mask().equal(untouched.mask()));
    EXPECT_TRUE(model.scales().equal(untouched.scales()));
}

TEST(InitTest, LinearLayersAreUniformWithinTheInverseRootOfTheirInputs) {
    const auto model = make_mnist_cnn();
    initialise_parameters(*model, 7);
    const double bound = 1 / std::sqrt(9216.0);

    for (const std::string name : {"fc1.weight", "fc1.bias"}) {
        const at::Tensor values = parameter(*model, name).to(at::kDouble);
        const double n = static_cast<double>(values.numel());
        EXPECT_LE(values.abs().max().item<double>(), bound);
        EXPECT_NEAR(values.mean().item<double>(), 0, 5 * bound / std::sqrt(3 * n));
        EXPECT_NEAR(values.pow(2).mean().item<double>() / (bound * bound / 3), 1, 5 / std::sqrt(n));
    }
}

class Normal final : public Model {
public:
    Normal() { register_parameter("weight", at::empty({400, 501})); }
    std::vector<std::string> loss_terms() const override { return {"loss"}; }
    std::vector<MetricSchema> metrics() const override { return {}; }
    ForwardResult forward(const MicroBatch&, const ForwardContext&) override { return {}; }
    InitialDistribution initial_distribution(const std::string&) const override {
        return {InitialDistribution::Kind::normal, 0.02};
    }
};

class Given final : public Model {
public:
    explicit Given(at::Tensor elements) : elements_{std::move(elements)} {
        register_parameter("bias", at::zeros({3}));
    }
    std::vector<std::string> loss_terms() const override { return {"loss"}; }
    std::vector<MetricSchema> metrics() const override { return {}; }
    ForwardResult forward(const MicroBatch&, const ForwardContext&) override { return {}; }
    InitialDistribution initial_distribution(const std::string&) const override {
        return {.kind = InitialDistribution::Kind::elements, .elements = elements_};
    }

private:
    at::Tensor elements_;
};

TEST(InitTest, ElementsAreTakenAsTheyAre) {
    Given model{at::tensor({-1.5, 0.0, 2.0}, at::kDouble)};
    initialise_parameters(model, 3);
    EXPECT_TRUE(parameter(model, "bias").equal(at::tensor({-1.5F, 0.0F, 2.0F})));

    Given misfit{at::zeros({4}, at::kDouble)};
    EXPECT_THROW(initialise_parameters(misfit, 3), InternalError);
}

TEST(InitTest, WithoutDrawsThereAreZerosInPlaceOfRandomNumbersAlone) {
    test::MixedModel model;
    const test::MixedModel untouched;
    initialise_without_draws(model);
    EXPECT_EQ(model.trained.abs().sum().item<double>(), 0);
    EXPECT_TRUE(model.mask().equal(untouched.mask()));

    Given given{at::tensor({-1.5, 0.0, 2.0}, at::kDouble)};
    initialise_without_draws(given);
    EXPECT_TRUE(parameter(given, "bias").equal(at::tensor({-1.5F, 0.0F, 2.0F})));
}

TEST(InitTest, NormalDistributionHasItsMoments) {
    Normal model;
    initialise_parameters(model, 3);

    const at::Tensor z = parameter(model, "weight").to(at::kDouble) / 0.02;
    const double n = static_cast<double>(z.numel());
    EXPECT_NEAR(z.mean().item<double>(), 0, 5 / std::sqrt(n));
    EXPECT_NEAR(z.pow(2).mean().item<double>(), 1, 5 * std::sqrt(2 / n));
    EXPECT_NEAR(z.pow(4).mean().item<double>(), 3, 5 * std::sqrt(96 / n));
    // P(|z| < 1) = erf(1 / sqrt(2))
    EXPECT_NEAR(z.abs().lt(1).to(at::kDouble).mean().item<double>(),
                std::erf(std::sqrt(0.5)),
                2.5 / std::sqrt(n));
}

}  // namespace
}  // namespace hetseq
