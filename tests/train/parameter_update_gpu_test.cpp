// The optimizer's step on a GPU, asked for before the host knows the verdict.
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/parameter_update.hpp"

#include "gpu.hpp"
#include "optim/toy_module.hpp"

namespace hetseq {
namespace {

constexpr double lr = 0.1;

// As an optimizer in Python.
class Ungated final : public Optimizer {
public:
    void step(FlatParameters& parameters, double rate) override {
        parameters.values().sub_(parameters.gradients(), rate);
    }
    std::map<std::string, at::Tensor> state() const override { return {}; }
};

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
    // `problem`: 0 or 1, as a rank's status has it.
    void set_gate(ParameterUpdate& update, double problem) const {
        const auto on_gpu = at::TensorOptions(at::kDouble).device(test::gpu());
        update.gate()->set(at::full({1}, problem, on_gpu), at::full({}, 2, on_gpu));
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

TEST_F(ParameterUpdateOnGpuTest, AnOptimizerWithoutAGateIsClippedByTheHost) {
    Ungated optimizer;
    ParameterUpdate update{*parameters_, optimizer, 0.5};
    const at::Tensor expected = values() - lr * 0.25 * parameters_->gradients().cpu();

    EXPECT_EQ(update.gate(), nullptr);
    update.apply(lr, 2);

    EXPECT_TRUE(values().allclose(expected, 1e-12, 1e-13));
}

}  // namespace
}  // namespace hetseq
