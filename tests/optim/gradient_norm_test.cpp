#include "hetseq/optim/gradient_norm.hpp"

#include <cmath>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace hetseq {
namespace {

FlatParameters flat_like(const at::Tensor& x) {
    TensorRegistry model;
    model.register_parameter("x", x.clone());
    return {model, [](const std::string&) { return true; }};
}

// The norm of one parameter, which is padded with zeros.
at::Tensor gradient_norm(const at::Tensor& x) {
    const FlatParameters flat = flat_like(x);
    return GradientNorm{flat}.of(flat.values());
}

TEST(GradientNormTest, IsTheRootOfTheSummedSquares) {
    for (const std::int64_t n : {1, 15, 1000, 200001}) {
        const at::Tensor x = at::randn({n}, at::kDouble);

        EXPECT_NEAR(
            gradient_norm(x).item<double>() / x.pow(2).sum().sqrt().item<double>(), 1, 1e-13);
    }
}

TEST(GradientNormTest, SumsFloatsInDouble) {
    const std::int64_t n = 1 << 20;
    const at::Tensor x = at::full({n}, 0.1f);

    // n equal squares of the float nearest to 0.1: an fp32 sum would be off by about 1e-3.
    const double expected = static_cast<double>(0.1f) * 1024;
    EXPECT_NEAR(gradient_norm(x).item<double>(), expected, 1e-12 * expected);
}

TEST(GradientNormTest, SquaresBeyondFloatDoNotOverflow) {
    EXPECT_NEAR(gradient_norm(at::full({4}, 1e30f)).item<double>() / 2e30, 1, 1e-7);
}

TEST(GradientNormTest, TheSameTensorHoldsEachNorm) {
    GradientNorm norm{flat_like(at::ones({300000}))};
    const at::Tensor first = norm.of(at::full({300000}, 2.0));
    EXPECT_NEAR(first.item<double>(), 2 * std::sqrt(300000.0), 1e-9);
    EXPECT_TRUE(norm.of(at::ones({300000})).is_same(first));
    EXPECT_NEAR(first.item<double>(), std::sqrt(300000.0), 1e-9);
}

TEST(GradientNormTest, NonFiniteValuesShow) {
    at::Tensor x = at::ones({100});
    x[50] = std::numeric_limits<float>::infinity();

    EXPECT_FALSE(std::isfinite(gradient_norm(x).item<double>()));
}

}  // namespace
}  // namespace hetseq
