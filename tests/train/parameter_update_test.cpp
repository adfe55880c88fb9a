// The loss scale and the clipping that the host takes care of: on a CPU, and for optimizers that
// cannot be gated.
#include "hetseq/train/parameter_update.hpp"

#include <algorithm>
#include <memory>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "optim/toy_module.hpp"
#include "train/ungated_sgd.hpp"

namespace hetseq {
namespace {

constexpr double lr = 0.1, clip_norm = 0.5, large_scale = 65536;

// Gradients of the toy, and what is summed of them where the loss has a scale.
class ParameterUpdateTest : public testing::TestWithParam<at::ScalarType> {
protected:
    ParameterUpdateTest() : module_{GetParam()}, parameters_{module_, test::matrices_decay} {}

    // Another gradient for each update. Padding stays zero.
    at::Tensor summed(int update, double scale) {
        at::manual_seed(static_cast<std::uint64_t>(update));
        parameters_.zero_gradients();
        std::vector<at::Tensor> gradients;
        for (const FlatParameters::Parameter& parameter : parameters_.parameters()) {
            gradients.push_back(at::randn({parameter.numel}, GetParam()));
            at::Tensor own = parameters_.gradients().narrow(0, parameter.offset, parameter.numel);
            own.copy_(gradients.back() * scale);
        }
        return at::cat(gradients);
    }

    test::ToyModule module_;
    FlatParameters parameters_;
};

// The second update has another scale, as after an overflow.
TEST_P(ParameterUpdateTest, AnUngatedOptimizerSeesUnscaledGradientsOnce) {
    for (const double clip : {0.0, clip_norm, 1e9}) {
        test::UngatedSgd optimizer;
        ParameterUpdate update{parameters_, optimizer, clip};
        for (int i = 0; i < 3; ++i) {
            const double scale = i == 0 ? large_scale : i == 1 ? large_scale / 32 : 1;
            const at::Tensor gradients = summed(i, scale);
            const double norm = gradients.to(at::kDouble).norm().item<double>();
            const bool clips = clip > 0 && norm > clip;
            ASSERT_EQ(clips, clip == clip_norm);

            update.apply(lr, norm, scale);

            ASSERT_EQ(optimizer.seen().size(), i + 1U);
            EXPECT_TRUE(
                optimizer.seen().back().equal(clips ? gradients * (clip / norm) : gradients))
                << clip << " " << scale;
        }
    }
}

// As with a loss that has no scale: the same bits.
TEST_P(ParameterUpdateTest, OnACpuEachOptimizerStepsWithUnscaledGradients) {
    using Make = std::unique_ptr<Optimizer> (*)(FlatParameters&, const OptimizerOptions&);
    const at::Tensor first = parameters_.values().clone();
    for (const Make make : {make_adam, make_adamw, make_lamb, make_sgd, make_adadelta})
        for (const double clip : {0.0, clip_norm}) {
            const auto values_after_three = [&](double scale) {
                parameters_.values().copy_(first);
                const auto optimizer = make(parameters_, {.weight_decay = 0.1, .momentum = 0.9});
                ParameterUpdate update{parameters_, *optimizer, clip};
                for (int i = 0; i < 3; ++i)
                    update.apply(lr, summed(i, scale).to(at::kDouble).norm().item<double>(), scale);
                return parameters_.values().clone();
            };
            const at::Tensor expected = values_after_three(1);

            EXPECT_TRUE(values_after_three(large_scale).equal(expected)) << clip;
            EXPECT_FALSE(expected.equal(first));
        }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         ParameterUpdateTest,
                         testing::Values(at::kFloat, at::kDouble),
                         [](const auto& info) { return std::string(at::toString(info.param)); });

}  // namespace
}  // namespace hetseq
