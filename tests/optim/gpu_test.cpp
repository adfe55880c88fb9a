// Optimizers on a GPU against the same on the CPU.
#include "gpu.hpp"

#include <algorithm>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_norm.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/optim/step_gate.hpp"

#include "optim/toy_module.hpp"

namespace hetseq {
namespace {

constexpr double clip_norm = 5;

using Make = std::unique_ptr<Optimizer> (*)(FlatParameters&, const OptimizerOptions&);

// On a GPU behind a gate, which is closed for the third step at first.
at::Tensor parameters_after_five_steps(Make make, at::Device device) {
    test::ToyModule module;
    module.to(device);
    FlatParameters flat(module, test::matrices_decay);
    OptimizerOptions options;
    options.weight_decay = 0.1;
    options.momentum = 0.9;
    const auto optimizer = make(flat, options);
    StepGate gate{flat.gradients().options(), clip_norm};
    const at::Tensor status = at::zeros({2}, at::TensorOptions(at::kDouble).device(device));
    GradientNorm norm{flat};
    if (!device.is_cpu())
        optimizer->use_gate(gate.closed());
    for (int step = 0; step < 5; ++step) {
        at::manual_seed(static_cast<std::uint64_t>(step));
        const at::Tensor x = at::randn({4, 5}, at::kDouble).to(device);
        flat.zero_gradients();
        module.loss(x, step % 2 == 0).backward();
        if (device.is_cpu()) {
            const double length = norm.of(flat.gradients()).item<double>();
            flat.gradients().mul_(std::min(1.0, clip_norm / length));
        } else {
            if (step == 2) {
                gate.set(status + 1, norm.of(flat.gradients()));
                optimizer->step(flat, 1e-2);
                optimizer->take_back();
            }
            gate.set(status, norm.of(flat.gradients()));
            gate.prepare(flat.gradients());
        }
        optimizer->step(flat, 1e-2);
    }
    return flat.values().cpu();
}

class OptimizerOnGpuTest : public testing::Test {
protected:
    void SetUp() override { HETSEQ_NEEDS_GPU(); }

    static void expect_same_on_both(Make make) {
        const at::Tensor on_cpu = parameters_after_five_steps(make, at::kCPU);
        const at::Tensor on_gpu = parameters_after_five_steps(make, test::gpu());
        EXPECT_TRUE(on_gpu.allclose(on_cpu, 1e-11, 1e-12)) << (on_gpu - on_cpu).abs().max();
    }
};

TEST_F(OptimizerOnGpuTest, AdamGivesWhatItGivesOnTheCpu) {
    expect_same_on_both(make_adam);
}

TEST_F(OptimizerOnGpuTest, AdamWGivesWhatItGivesOnTheCpu) {
    expect_same_on_both(make_adamw);
}

TEST_F(OptimizerOnGpuTest, LambGivesWhatItGivesOnTheCpu) {
    expect_same_on_both(make_lamb);
}

TEST_F(OptimizerOnGpuTest, AdadeltaGivesWhatItGivesOnTheCpu) {
    expect_same_on_both(make_adadelta);
}

TEST_F(OptimizerOnGpuTest, SgdGivesWhatItGivesOnTheCpu) {
    expect_same_on_both(make_sgd);
}

double norm_of(const at::Tensor& x) {
    TensorRegistry model;
    model.register_parameter("x", x.clone());
    const FlatParameters flat{model, [](const std::string&) { return true; }};
    return GradientNorm{flat}.of(flat.values()).item<double>();
}

TEST_F(OptimizerOnGpuTest, TheGradientsNormIsThatOfTheCpu) {
    const at::Tensor gradients = at::randn({100'003}, at::kFloat);

    EXPECT_NEAR(norm_of(gradients.to(test::gpu())) / norm_of(gradients), 1, 1e-12);
}

// Three runs of blocks are held, by one number of this device and one of another.
TEST_F(OptimizerOnGpuTest, SquaresOfWhatIsHeldAddUpToTheNorm) {
    constexpr std::int64_t block = FlatParameters::most_in_block;
    const std::int64_t numel = 5 * block;
    const at::Tensor gradients = at::randn({numel}, at::kFloat);
    at::Tensor sum = at::zeros({5}, at::TensorOptions(at::kDouble).device(test::gpu()));
    TensorRegistry model;
    model.register_parameter("x", gradients.to(test::gpu()));
    FlatParameters flat{model, [](const std::string&) { return true; }};

    for (const int rank : {0, 1}) {
        flat.shard_state({{0, 0, block},
                          {1, block, block},
                          {0, 2 * block, block},
                          {1, 3 * block, block},
                          {0, 4 * block, block}},
                         rank);
        const at::Tensor squares = at::ones_like(sum);
        GradientNorm{flat}.held_squares(flat.values(), squares);
        sum += squares;
    }

    EXPECT_NEAR(GradientNorm{flat}.from_squares(sum).item<double>() / norm_of(gradients), 1, 1e-12);
}

}  // namespace
}  // namespace hetseq
