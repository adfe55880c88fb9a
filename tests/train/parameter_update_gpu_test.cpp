// The optimizer's step on a GPU, asked for before the host knows the verdict.
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/parameter_update.hpp"

#include "gpu.hpp"
#include "optim/toy_module.hpp"
#include "train/ungated_sgd.hpp"

namespace hetseq {
namespace {

constexpr double lr = 0.1;

class ParameterUpdateOnGpuTest : public testing::Test {
protected:
    void SetUp() override {
        HETSEQ_NEEDS_GPU();
        module_.to(test::gpu());
        parameters_.emplace(module_, test::matrices_decay);
        adam_ = make_adam(*parameters_, {});
        parameters_->gradients().fill_(0.5);
    }

    std::int64_t adams_steps() const { return adam_->state().at("step").item<std::int64_t>(); }
    at::Tensor values() const { return parameters_->values().cpu(); }
    // `problem`: 0 or 1, as a rank's status has it. Without `scale` the norm is 2.
    void set_gate(ParameterUpdate& update, double problem, double scale = 1) const {
        const auto on_gpu = at::TensorOptions(at::kDouble).device(test::gpu());
        update.gate()->set(at::full({1}, problem, on_gpu), at::full({}, 2 * scale, on_gpu), scale);
    }
    at::Tensor gradients() const { return parameters_->gradients().cpu(); }
    // What the optimizer is to see of them, whose norm is said to be 2, is 0.5 times `factor`.
    void expect_step_of(double factor, const at::Tensor& before) const {
        EXPECT_TRUE(gradients().equal(at::full_like(before, 0.5 * factor)));
        EXPECT_TRUE(values().allclose(before - lr * 0.5 * factor, 1e-12, 1e-13));
    }

    test::ToyModule module_;
    std::optional<FlatParameters> parameters_;
    std::unique_ptr<Optimizer> adam_;
};

TEST_F(ParameterUpdateOnGpuTest, StepsOnceBeforeTheVerdict) {
    ParameterUpdate update{*parameters_, *adam_, 0};
    ASSERT_NE(update.gate(), nullptr);
    const at::Tensor before = values();

    set_gate(update, 0);
    update.step_behind_gate(lr);
    const at::Tensor stepped = values();
    update.apply(lr, 2);

    EXPECT_FALSE(stepped.equal(before));
    EXPECT_TRUE(values().equal(stepped));
    EXPECT_EQ(adams_steps(), 1);
    EXPECT_GE(update.take_ms().value(), 0);
    EXPECT_FALSE(update.take_ms());
}

TEST_F(ParameterUpdateOnGpuTest, ARepeatedUpdateCountsOnceAndASkippedOneNever) {
    ParameterUpdate update{*parameters_, *adam_, 0};
    const at::Tensor before = values();

    set_gate(update, 1);
    update.step_behind_gate(lr);
    update.leave_out();
    EXPECT_TRUE(values().equal(before));
    EXPECT_EQ(adams_steps(), 0);

    set_gate(update, 1);
    update.step_behind_gate(lr);
    set_gate(update, 0);
    update.step_behind_gate(lr);
    update.apply(lr, 2);
    EXPECT_FALSE(values().equal(before));
    EXPECT_EQ(adams_steps(), 1);
}

TEST_F(ParameterUpdateOnGpuTest, StepsAfterTheVerdictWhereItHasNotStepped) {
    ParameterUpdate update{*parameters_, *adam_, 0};
    const at::Tensor before = values();

    set_gate(update, 0);
    update.apply(lr, 2);

    EXPECT_FALSE(values().equal(before));
    EXPECT_EQ(adams_steps(), 1);
}

TEST_F(ParameterUpdateOnGpuTest, TheGateEndsWithIt) {
    const at::Tensor before = values();
    {
        ParameterUpdate update{*parameters_, *adam_, 0};
        set_gate(update, 1);
    }

    adam_->step(*parameters_, lr);

    EXPECT_FALSE(values().equal(before));
}

// Clipped to 0.5, a norm of 2 gives a quarter.
TEST_F(ParameterUpdateOnGpuTest, AnOptimizerWithoutAGateIsUnscaledAndClippedByTheHost) {
    for (const double scale : {1.0, 65536.0})
        for (const double clip_norm : {0.0, 0.5}) {
            test::UngatedSgd optimizer;
            ParameterUpdate update{*parameters_, optimizer, clip_norm};
            parameters_->gradients().fill_(0.5 * scale);

            EXPECT_EQ(update.gate(), nullptr);
            update.apply(lr, 2, scale);

            ASSERT_EQ(optimizer.seen().size(), 1U);
            EXPECT_TRUE(optimizer.seen().front().eq(clip_norm > 0 ? 0.125 : 0.5).all().item<bool>())
                << scale << " " << clip_norm;
        }
}

// SGD, whose step is as large as what it sees. The gate is set again where the update is repeated
// with a smaller scale; the host unscales nothing that the device did.
TEST_F(ParameterUpdateOnGpuTest, BehindTheGateGradientsAreUnscaledOnce) {
    const auto sgd = make_sgd(*parameters_, {});
    for (const double clip_norm : {0.0, 0.5}) {
        ParameterUpdate update{*parameters_, *sgd, clip_norm};
        const at::Tensor before = values();
        parameters_->gradients().fill_(0.5 * 65536);
        set_gate(update, 1, 65536);
        update.step_behind_gate(lr);
        EXPECT_TRUE(values().equal(before));

        parameters_->gradients().fill_(0.5 * 2048);
        set_gate(update, 0, 2048);
        update.step_behind_gate(lr);
        update.apply(lr, 2, 2048);

        expect_step_of(clip_norm > 0 ? 0.25 : 1, before);
    }
}

TEST_F(ParameterUpdateOnGpuTest, AfterTheVerdictGradientsAreUnscaledOnce) {
    const auto sgd = make_sgd(*parameters_, {});
    for (const double clip_norm : {0.0, 0.5}) {
        ParameterUpdate update{*parameters_, *sgd, clip_norm};
        const at::Tensor before = values();
        parameters_->gradients().fill_(0.5 * 65536);

        set_gate(update, 0, 65536);
        update.apply(lr, 2, 65536);

        expect_step_of(clip_norm > 0 ? 0.25 : 1, before);
    }
}

}  // namespace
}  // namespace hetseq
