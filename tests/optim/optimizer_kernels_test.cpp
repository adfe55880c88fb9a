// The GPU's kernels, run on the CPU by the emulator, against the CPU's own.
// clang-format off: kernels take their words from the emulator, which comes first.
#include "stand_in/simt/simt.hpp"
// clang-format on

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "optim/kernels/adadelta.cuh"
#include "optim/kernels/adadelta.hpp"
#include "optim/kernels/step_gate.cuh"
#include "optim/kernels/sum_of_squares.cuh"

namespace hetseq::detail {
namespace {

template <class T>
double sum_by_kernel(const at::Tensor& x) {
    const unsigned blocks = square_blocks(x.numel());
    std::vector<double> sums(blocks, -1);
    simt::launch({blocks}, {square_block_threads}, [&] {
        sum_of_squares(x.const_data_ptr<T>(), x.numel(), sums.data());
    });
    double sum = 0;
    for (const double part : sums)
        sum += part;
    return sum;
}

TEST(SumOfSquaresKernelTest, AgreesWithFp64) {
    for (const std::int64_t count : {0, 1, 255, 256, 1023, 1025, 5000}) {
        const at::Tensor x = at::randn({count}, at::kFloat);
        const double expected = x.to(at::kDouble).pow(2).sum().item<double>();

        EXPECT_NEAR(sum_by_kernel<float>(x), expected, 1e-13 * expected) << count;
        EXPECT_NEAR(sum_by_kernel<double>(x.to(at::kDouble)), expected, 1e-13 * expected);
    }
}

TEST(SumOfSquaresKernelTest, OneBlockSumsAllElements) {
    const at::Tensor x = at::randn({5000}, at::kDouble);
    double sum = -1;
    simt::launch({1}, {square_block_threads}, [&] {
        sum_of_squares(x.const_data_ptr<double>(), x.numel(), &sum);
    });

    const double expected = x.pow(2).sum().item<double>();
    EXPECT_NEAR(sum, expected, 1e-13 * expected);
}

TEST(SumOfSquaresKernelTest, SquaresDoNotOverflowFp32) {
    const double sum = sum_by_kernel<float>(at::full({4}, 1e30F));

    EXPECT_NEAR(sum / 4e60, 1, 1e-6);
}

TEST(SumOfSquaresKernelTest, HasAsManyBlocksAsItsElementsNeed) {
    EXPECT_EQ(square_blocks(0), 1U);
    EXPECT_EQ(square_blocks(1024), 1U);
    EXPECT_EQ(square_blocks(1025), 2U);
    EXPECT_EQ(square_blocks(std::int64_t{1} << 40), 1024U);
}

AdadeltaTensors random_tensors(std::int64_t count, at::ScalarType type) {
    return {at::randn({count}, type),
            at::randn({count}, type),
            at::rand({count}, type),
            at::rand({count}, type)};
}

template <class T>
void compare_steps(std::int64_t count, at::ScalarType type, double tolerance) {
    const AdadeltaStep step{0.5, 0.9, 1e-6, 0.01};
    const AdadeltaTensors own = random_tensors(count, type);
    const AdadeltaTensors expected{
        own.values.clone(), own.gradients, own.square_avg.clone(), own.acc_delta.clone()};
    adadelta_cpu(expected, {}, step);

    simt::launch_independent({adadelta_blocks(count)}, {adadelta_block_threads}, [&] {
        adadelta(own.values.mutable_data_ptr<T>(),
                 own.gradients.const_data_ptr<T>(),
                 own.square_avg.mutable_data_ptr<T>(),
                 own.acc_delta.mutable_data_ptr<T>(),
                 count,
                 nullptr,
                 AdadeltaFactors<T>(step));
    });

    EXPECT_TRUE(own.values.allclose(expected.values, tolerance, tolerance)) << count;
    EXPECT_TRUE(own.square_avg.allclose(expected.square_avg, tolerance, tolerance)) << count;
    EXPECT_TRUE(own.acc_delta.allclose(expected.acc_delta, tolerance, tolerance)) << count;
}

TEST(AdadeltaKernelTest, TakesTheStepOfTheCpu) {
    for (const std::int64_t count : {1, 255, 256, 257, 1000}) {
        compare_steps<float>(count, at::kFloat, 1e-6);
        compare_steps<double>(count, at::kDouble, 1e-14);
    }
}

TEST(AdadeltaKernelTest, ChangesNothingBehindAClosedGate) {
    const AdadeltaTensors tensors = random_tensors(300, at::kFloat);
    const AdadeltaTensors before{
        tensors.values.clone(), {}, tensors.square_avg.clone(), tensors.acc_delta.clone()};
    const float closed = 1;

    simt::launch_independent({adadelta_blocks(300)}, {adadelta_block_threads}, [&] {
        adadelta(tensors.values.mutable_data_ptr<float>(),
                 tensors.gradients.const_data_ptr<float>(),
                 tensors.square_avg.mutable_data_ptr<float>(),
                 tensors.acc_delta.mutable_data_ptr<float>(),
                 300,
                 &closed,
                 AdadeltaFactors<float>(AdadeltaStep{}));
    });

    EXPECT_TRUE(tensors.values.equal(before.values));
    EXPECT_TRUE(tensors.square_avg.equal(before.square_avg));
    EXPECT_TRUE(tensors.acc_delta.equal(before.acc_delta));
}

struct Gate {
    float closed = -1;
    float factor = -1;
};

Gate gate_by_kernel(const std::vector<double>& status,
                    double norm,
                    double clip_norm,
                    double scale = 1) {
    Gate gate;
    const StepGateInput input{
        status.data(), static_cast<std::int64_t>(status.size()), &norm, {clip_norm, scale}};
    simt::launch_independent({1}, {1}, [&] { step_gate(input, &gate.closed, &gate.factor); });
    return gate;
}

TEST(StepGateKernelTest, IsClosedByARankOutOfMemoryAndByWhatIsNotFinite) {
    const double infinity = std::numeric_limits<double>::infinity();

    EXPECT_EQ(gate_by_kernel({0, 0}, 3, 0).closed, 0);
    EXPECT_EQ(gate_by_kernel({0, 7}, 3, 0).closed, 0);
    EXPECT_EQ(gate_by_kernel({2, 7}, 3, 0).closed, 1);
    EXPECT_EQ(gate_by_kernel({0, 7, -infinity}, 3, 0).closed, 1);
    EXPECT_EQ(gate_by_kernel({0, std::nan(""), 7}, 3, 0).closed, 1);
    EXPECT_EQ(gate_by_kernel({0, 0}, infinity, 0).closed, 1);
    EXPECT_EQ(gate_by_kernel({0, 0}, std::nan(""), 0).closed, 1);
}

TEST(ScaleKernelTest, MultipliesEveryElement) {
    const at::Tensor values = at::randn({300}, at::kFloat), before = values.clone();
    for (const float factor : {1.0F, 0.25F})
        simt::launch_independent({scale_blocks(300)}, {scale_block_threads}, [&] {
            scale(values.mutable_data_ptr<float>(), std::int64_t{300}, &factor);
        });

    EXPECT_TRUE(values.equal(before * 0.25));
}

TEST(StepGateKernelTest, ClipsLargerNormsOnly) {
    EXPECT_EQ(gate_by_kernel({0}, 3, 0).factor, 1);
    EXPECT_EQ(gate_by_kernel({0}, 3, 4).factor, 1);
    EXPECT_EQ(gate_by_kernel({0}, 3, 1.5).factor, 0.5F);
}

// The norm is that of scaled gradients, and `clip_norm` is meant for gradients without the scale.
TEST(StepGateKernelTest, TakesTheLossScaleOutBeforeItClips) {
    constexpr double scale = 65536, infinity = std::numeric_limits<double>::infinity();

    EXPECT_EQ(gate_by_kernel({0}, 3 * scale, 0, scale).factor, 1 / 65536.0F);
    EXPECT_EQ(gate_by_kernel({0}, 3 * scale, 4, scale).factor, 1 / 65536.0F);
    EXPECT_EQ(gate_by_kernel({0}, 3 * scale, 1.5, scale).factor, 0.5F / 65536);
    EXPECT_EQ(gate_by_kernel({0, 7}, 3 * scale, 1.5, scale).closed, 0);
    EXPECT_EQ(gate_by_kernel({2, 7}, 3 * scale, 1.5, scale).closed, 1);
    EXPECT_EQ(gate_by_kernel({0, 7}, infinity, 1.5, scale).closed, 1);
}

}  // namespace
}  // namespace hetseq::detail
