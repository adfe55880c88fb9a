#include "hetseq/optim/averaged_optimizer.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"

#include "optim/toy_module.hpp"

namespace hetseq {
namespace {

using test::matrices_decay;
using test::ToyModule;

constexpr double kept = 0.9, rate = 1e-2;

class AveragedOptimizerTest : public testing::Test {
protected:
    void step() {
        flat_.zero_gradients();
        module_.loss(at::randn({4, 5}, at::kDouble), true).backward();
        optimizer_->step(flat_, rate);
    }

    ToyModule module_;
    FlatParameters flat_{module_, matrices_decay};
    std::unique_ptr<Optimizer> optimizer_ = make_averaged(make_adamw(flat_, {}), flat_, kept);
};

TEST_F(AveragedOptimizerTest, AverageFollowsTheParameters) {
    at::Tensor expected = flat_.values().detach().clone();
    for (int i = 0; i < 20; ++i) {
        step();
        expected = kept * expected + (1 - kept) * flat_.values().detach();
    }

    EXPECT_TRUE(at::allclose(optimizer_->average(), expected, 0, 1e-14));
    EXPECT_FALSE(at::allclose(expected, flat_.values(), 0, 1e-4));
}

TEST_F(AveragedOptimizerTest, ParametersAreThoseWithoutIt) {
    ToyModule other;
    FlatParameters plain(other, matrices_decay);
    plain.values().copy_(flat_.values());
    const auto optimizer = make_adamw(plain, {});
    for (int i = 0; i < 5; ++i) {
        step();
        plain.gradients().copy_(flat_.gradients());
        optimizer->step(plain, rate);
    }

    EXPECT_TRUE(plain.values().equal(flat_.values()));
}

TEST_F(AveragedOptimizerTest, ClosedGateKeepsTheAverage) {
    step();
    const at::Tensor closed = at::ones({}, at::kFloat);
    ASSERT_TRUE(optimizer_->use_gate(closed));
    const at::Tensor before = optimizer_->average().clone();
    step();
    optimizer_->take_back();
    EXPECT_TRUE(optimizer_->average().equal(before));

    closed.zero_();
    step();
    EXPECT_TRUE(
        at::allclose(optimizer_->average(), kept * before + (1 - kept) * flat_.values(), 0, 1e-14));
}

TEST_F(AveragedOptimizerTest, BeginsAnewWhereTheParametersAreOthers) {
    step();
    const at::Tensor values = at::arange(flat_.values().numel(), flat_.values().options());
    {
        const at::NoGradGuard no_grad;
        flat_.values().copy_(values);
    }
    optimizer_->begin(flat_);

    EXPECT_TRUE(optimizer_->average().equal(values));
}

TEST_F(AveragedOptimizerTest, IsATensorOfTheState) {
    EXPECT_EQ(optimizer_->state_tensors(), make_adamw(flat_, {})->state_tensors() + 1);
    EXPECT_TRUE(optimizer_->state().at(Optimizer::average_name).is_same(optimizer_->average()));
    EXPECT_FALSE(make_adamw(flat_, {})->average().defined());
}

// LAMB holds a tensor that no checkpoint has.
TEST_F(AveragedOptimizerTest, CountsWhatTheOptimizerHoldsBesideItsState) {
    OptimizerOptions options;
    options.weight_decay = 0.01;
    const std::int64_t alone = make_lamb(flat_, options)->state_tensors();
    EXPECT_EQ(make_averaged(make_lamb(flat_, options), flat_, kept)->state_tensors(), alone + 1);
    EXPECT_EQ(alone, 3);
}

// A rule that brings a schedule of its own.
class ScheduledOptimizer final : public Optimizer {
public:
    void step(FlatParameters&, double) override {}
    double rate(double scheduled) const override { return scheduled / 4; }
    std::map<std::string, at::Tensor> state() const override { return {}; }
};

TEST_F(AveragedOptimizerTest, TellsTheRateOfTheOptimizer) {
    const auto averaged = make_averaged(std::make_unique<ScheduledOptimizer>(), flat_, kept);
    EXPECT_EQ(averaged->rate(1), 0.25);
}

}  // namespace
}  // namespace hetseq
