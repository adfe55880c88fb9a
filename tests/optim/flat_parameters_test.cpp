#include "hetseq/optim/flat_parameters.hpp"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "optim/toy_module.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::matrices_decay;
using test::ToyModule;

std::vector<std::string> names(const FlatParameters& flat) {
    std::vector<std::string> names;
    for (const auto& parameter : flat.parameters())
        names.push_back(parameter.name);
    return names;
}

TEST(FlatParametersTest, LayoutIsTheReverseOfRegistrationWithTiedOnesOnceAndFrozenOnesLeftOut) {
    ToyModule module;

    const FlatParameters flat(module, matrices_decay);

    EXPECT_THAT(names(flat),
                testing::ElementsAre("conditional", "unused", "second", "bias", "first"));
}

TEST(FlatParametersTest, EachParameterBeginsAtAMultipleOf64Bytes) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
        ToyModule module(type);

        const FlatParameters flat(module, matrices_decay);

        for (const auto& parameter : flat.parameters()) {
            const auto address = reinterpret_cast<std::uintptr_t>(parameter.tensor.data_ptr());
            EXPECT_EQ(address % 64, 0u) << parameter.name;
            EXPECT_EQ(parameter.tensor.data_ptr(),
                      flat.values().narrow(0, parameter.offset, 1).data_ptr());
        }
        EXPECT_EQ(flat.values().nbytes() % 64, 0u);
    }
}

TEST(FlatParametersTest, ValuesStayAndPaddingIsZero) {
    ToyModule module;
    const at::Tensor before = module.second.detach().clone();
    double sum = 0;
    for (const auto& item : module.named_parameters())
        if (item.name != "tied" && item.name != "frozen")
            sum += item.tensor.detach().abs().sum().item<double>();

    const FlatParameters flat(module, matrices_decay);

    EXPECT_TRUE(module.second.equal(before));
    EXPECT_NEAR(flat.values().abs().sum().item<double>(), sum, 1e-12);
    EXPECT_GT(flat.values().numel(), 5 * 7 + 7 + 7 * 3 + 3 + 2 * 3);
}

TEST(FlatParametersTest, BackwardAccumulatesIntoTheFlatGradients) {
    ToyModule module, reference;
    FlatParameters flat(module, matrices_decay);
    const at::Tensor a = at::randn({4, 5}, at::kDouble), b = at::randn({2, 5}, at::kDouble);

    module.loss(a, true).backward();
    module.loss(b, false).backward();
    (reference.loss(a, true) + reference.loss(b, false)).backward();

    for (const auto& parameter : flat.parameters()) {
        const at::Tensor view = flat.gradients().narrow(0, parameter.offset, parameter.numel);
        const at::Tensor expected = reference.named_parameters()[parameter.name].grad();
        if (expected.defined())
            EXPECT_TRUE(view.allclose(expected.flatten(), 1e-12, 1e-12)) << parameter.name;
        else
            EXPECT_EQ(view.abs().sum().item<double>(), 0) << parameter.name;
    }
}

TEST(FlatParametersTest, ZeroGradientsKeepsTheViews) {
    ToyModule module;
    FlatParameters flat(module, matrices_decay);
    module.loss(at::randn({4, 5}, at::kDouble), true).backward();

    flat.zero_gradients();

    EXPECT_EQ(flat.gradients().abs().sum().item<double>(), 0);
    module.loss(at::randn({4, 5}, at::kDouble), true).backward();
    for (const auto& parameter : flat.parameters())
        EXPECT_EQ(parameter.tensor.grad().data_ptr(),
                  flat.gradients().narrow(0, parameter.offset, 1).data_ptr());
}

TEST(FlatParametersTest, SegmentsJoinNeighboursThatDecayAlike) {
    ToyModule module;

    const FlatParameters flat(module, matrices_decay);

    // conditional | unused | second | bias | first
    ASSERT_EQ(flat.segments().size(), 5u);
    std::int64_t end = 0;
    bool decays = true;
    for (const auto& segment : flat.segments()) {
        EXPECT_EQ(segment.offset, end);
        EXPECT_EQ(segment.decays, decays);
        end = segment.offset + segment.numel;
        decays = !decays;
    }
    EXPECT_EQ(end, flat.values().numel());
    ToyModule other;
    EXPECT_EQ(FlatParameters(other, [](const std::string&) { return true; }).segments().size(), 1u);
}

TEST(FlatParametersTest, SegmentsHaveOneLearningRateFactor) {
    ToyModule module;

    const FlatParameters flat(
        module,
        [](const std::string&) { return true; },
        [](const std::string& name) { return name == "second" || name == "bias" ? 0.5 : 2; });

    // conditional, unused | second, bias | first
    std::vector<double> factors;
    for (const auto& segment : flat.segments())
        factors.push_back(segment.learning_rate_factor);
    EXPECT_THAT(factors, testing::ElementsAre(2, 0.5, 2));
    EXPECT_EQ(flat.segments()[1].offset, flat.parameters()[2].offset);
    EXPECT_EQ(flat.segments()[2].offset, flat.parameters()[4].offset);
}

TEST(FlatParametersTest, AFactorThatIsNoneIsRefused) {
    for (const double factor : {-1.0, std::nan(""), double(INFINITY)}) {
        ToyModule module;
        EXPECT_THROW(
            FlatParameters(module, matrices_decay, [&](const std::string&) { return factor; }),
            BadConfig);
    }
}

TEST(FlatParametersTest, AModelWithoutATrainedParameterIsRefused) {
    ToyModule module;
    for (at::Tensor& parameter : module.parameters())
        parameter.set_requires_grad(false);

    EXPECT_THROW(FlatParameters(module, matrices_decay), BadConfig);
}

}  // namespace
}  // namespace hetseq
