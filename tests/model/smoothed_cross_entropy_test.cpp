#include "model/smoothed_cross_entropy.hpp"

#include <cmath>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "model/kernels/softmax_loops.hpp"

namespace hetseq::detail {
namespace {

struct Case {
    at::Tensor x, table, labels;
};

Case random_case(std::int64_t rows, std::int64_t classes, at::ScalarType type) {
    at::manual_seed(rows * 1000 + classes);
    return {at::randn({rows, 24}).to(type).requires_grad_(),
            at::randn({classes, 24}).to(type).requires_grad_(),
            at::randint(classes, {rows})};
}

// By LibTorch's own operators.
at::Tensor expected_loss(const Case& of, double smoothing) {
    const at::Tensor logits = at::linear(of.x, of.table);
    return at::cross_entropy_loss(logits, of.labels, {}, at::Reduction::Sum, -100, smoothing);
}

TEST(SmoothedCrossEntropyTest, IsLibTorchsWithItsGradients) {
    for (const std::int64_t rows : {0, 1, 5, 150})
        for (const std::int64_t classes : {1, 31, 32, 97, 40007})
            for (const double smoothing : {0.0, 0.1}) {
                SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(classes));
                if (rows == 150 && classes == 40007 && smoothing == 0)
                    continue;
                const Case own = random_case(rows, classes, at::kDouble);
                const Case other = random_case(rows, classes, at::kDouble);
                const SmoothedCrossEntropy sums = smoothed_cross_entropy(
                    own.x, own.table, own.labels, smoothing, CountCorrect::yes);
                const at::Tensor expected = expected_loss(other, smoothing);
                EXPECT_NEAR(sums.loss.item<double>(),
                            expected.item<double>(),
                            1e-10 * std::max(1.0, expected.item<double>()));
                (sums.loss * 0.25).backward();
                (expected * 0.25).backward();
                EXPECT_TRUE(at::allclose(own.x.grad(), other.x.grad(), 1e-9, 1e-12));
                EXPECT_TRUE(at::allclose(own.table.grad(), other.table.grad(), 1e-9, 1e-12));
                const at::Tensor likeliest = at::linear(own.x, own.table).argmax(1);
                EXPECT_EQ(sums.correct.item<double>(),
                          likeliest.eq(own.labels).sum().item<double>());
                EXPECT_NEAR(sums.nll.item<double>(),
                            expected_loss(own, 0).item<double>(),
                            1e-10 * std::max(1.0, sums.nll.item<double>()));
            }
}

TEST(SmoothedCrossEntropyTest, Fp32StaysCloseToFp64) {
    const Case narrow = random_case(300, 9001, at::kFloat);
    const Case wide{narrow.x.detach().to(at::kDouble).requires_grad_(),
                    narrow.table.detach().to(at::kDouble).requires_grad_(),
                    narrow.labels};
    const auto loss = [](const Case& of) {
        const at::Tensor sum =
            smoothed_cross_entropy(of.x, of.table, of.labels, 0.1, CountCorrect::no).loss;
        sum.backward();
        return sum.item<double>();
    };
    EXPECT_NEAR(loss(narrow) / loss(wide), 1, 1e-6);
    for (const auto& [a, b] : {std::pair{narrow.x, wide.x}, {narrow.table, wide.table}})
        EXPECT_LT((a.grad().to(at::kDouble) - b.grad()).abs().max().item<double>(),
                  1e-5 * b.grad().abs().max().item<double>());
}

TEST(SmoothedCrossEntropyTest, WithoutAGradientTheSumsAreTheSame) {
    const Case of = random_case(90, 1013, at::kFloat);
    const SmoothedCrossEntropy with =
        smoothed_cross_entropy(of.x, of.table, of.labels, 0.1, CountCorrect::yes);
    const at::NoGradGuard no_grad;
    const SmoothedCrossEntropy without =
        smoothed_cross_entropy(of.x, of.table, of.labels, 0.1, CountCorrect::yes);
    EXPECT_EQ(with.loss.item<double>(), without.loss.item<double>());
    EXPECT_EQ(with.correct.item<double>(), without.correct.item<double>());
}

// Other devices and types take these operators.
TEST(SmoothedCrossEntropyTest, OperatorsOfLibTorchGiveTheSame) {
    const Case of = random_case(50, 211, at::kFloat);
    const Case half{of.x.detach().to(at::kBFloat16).requires_grad_(),
                    of.table.detach().to(at::kBFloat16).requires_grad_(),
                    of.labels};
    const at::Tensor exact =
        smoothed_cross_entropy(of.x, of.table, of.labels, 0.1, CountCorrect::no).loss;
    const at::Tensor rounded =
        smoothed_cross_entropy(half.x, half.table, half.labels, 0.1, CountCorrect::no).loss;
    EXPECT_NEAR(rounded.item<double>() / exact.item<double>(), 1, 0.02);
    exact.backward();
    rounded.backward();
    EXPECT_LT((of.table.grad() - half.table.grad().to(at::kFloat)).norm().item<double>(),
              0.05 * of.table.grad().norm().item<double>());
}

// A GPU takes this path: --precision fp64 must mean fp64 there too.
TEST(SmoothedCrossEntropyTest, OperatorsOfLibTorchKeepFp64) {
    const Case of = random_case(50, 211, at::kDouble);
    at::Tensor logits = at::linear(of.x, of.table).detach().requires_grad_();
    const at::Tensor expected =
        at::cross_entropy_loss(logits, of.labels, {}, at::Reduction::Sum, -100, 0.1);
    expected.backward();
    at::Tensor reduced = logits.detach().clone();

    const at::Tensor sums = reduce_logits_anywhere(reduced, of.labels, 0.1, true);

    EXPECT_NEAR(sums[0].item<double>() / expected.item<double>(), 1, 1e-14);
    EXPECT_TRUE(at::allclose(reduced, logits.grad(), 1e-12, 1e-15));
}

TEST(SoftmaxLoopsTest, LargeAndSmallLogitsNeitherOverflowNorVanish) {
    std::vector<float> logits(100, -1e30F);
    logits[40] = 1e4F;
    logits[41] = 1e4F;
    const RowSums sums = row_sums(logits.data(), 100);
    EXPECT_NEAR(sums.log_sum_exp, 1e4 + std::log(2.0), 1e-2);
    EXPECT_EQ(sums.largest, 40);
    softmax_minus(logits.data(), 100, 1e4 + std::log(2.0), 0);
    EXPECT_NEAR(logits[40], 0.5, 1e-3);
    EXPECT_LT(logits[0], 1e-30F);
}

}  // namespace
}  // namespace hetseq::detail
