#include "model/sequence_attention.hpp"

#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace hetseq::detail {
namespace {

constexpr std::int64_t heads = 3, width = 5, hidden = heads * width;
const std::vector<std::int64_t> lengths{7, 1, 150, 12};
const DropoutExtent extent{200, 200};

Dropout dropout_of(double p) {
    return {p, {1, 2, 3}, at::arange(20, 20 + std::ssize(lengths), at::kLong)};
}

std::vector<std::int64_t> begins_of(const std::vector<std::int64_t>& sizes) {
    std::vector<std::int64_t> begins{0};
    for (const std::int64_t size : sizes)
        begins.push_back(begins.back() + size);
    return begins;
}

/// Each sequence by itself, in plain tensors.
at::Tensor reference(const at::Tensor& qkv, double p) {
    std::vector<at::Tensor> parts;
    std::int64_t begin = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
        Dropout dropout = dropout_of(p);
        dropout.sample_ids = dropout.sample_ids.narrow(0, static_cast<std::int64_t>(s), 1);
        const at::Tensor rows = qkv.narrow(0, begin, lengths[s]).unsqueeze(0);
        parts.push_back(self_attention(rows, {}, heads, dropout, extent).squeeze(0));
        begin += lengths[s];
    }
    return at::cat(parts);
}

struct Values {
    at::Tensor out, gradient;
};

template <class Function>
Values with_gradient(const at::Tensor& x, const Function& function) {
    const at::Tensor leaf = x.detach().requires_grad_();
    const at::Tensor out = function(leaf);
    const at::Tensor weights = at::arange(out.numel(), out.options()).view(out.sizes()).sin();
    (out * weights).sum().backward();
    return {out.detach(), leaf.grad()};
}

void expect_close(const Values& values, const Values& expected, double tolerance) {
    EXPECT_TRUE(values.out.allclose(expected.out, tolerance, tolerance));
    EXPECT_TRUE(values.gradient.allclose(expected.gradient, tolerance, tolerance))
        << (values.gradient - expected.gradient).abs().max();
}

at::Tensor projections(at::ScalarType type) {
    at::manual_seed(4);
    return at::randn({begins_of(lengths).back(), 3 * hidden}, at::kDouble).to(type);
}

TEST(SequenceAttentionTest, EachSequenceAttendsToItself) {
    const AttentionSpans spans{begins_of(lengths), begins_of(lengths), {}};
    for (const double p : {0.0, 0.3})
        for (const auto& [type, tolerance] :
             {std::pair{at::kDouble, 1e-13}, std::pair{at::kFloat, 1e-5}}) {
            const at::Tensor qkv = projections(type);

            const auto values = with_gradient(qkv, [&](const at::Tensor& x) {
                return sequence_attention(x, {}, spans, heads, dropout_of(p), extent);
            });

            expect_close(values,
                         with_gradient(qkv, [&](const at::Tensor& x) { return reference(x, p); }),
                         tolerance);
        }
}

// The second sequence has no query, the third has one twice, and they are in no order.
TEST(SequenceAttentionTest, SomeQueriesGiveTheirRowsAlone) {
    const at::Tensor positions = at::tensor({0, 6, 149, 3, 149, 11}, at::kLong);
    const at::Tensor rows = at::tensor({0, 6, 157, 11, 157, 169}, at::kLong);
    const AttentionSpans spans{begins_of(lengths), begins_of({2, 0, 3, 1}), positions};
    for (const double p : {0.0, 0.3}) {
        const at::Tensor qkv = projections(at::kDouble);

        const auto values = with_gradient(qkv, [&](const at::Tensor& x) {
            return sequence_attention(x.narrow(1, 0, hidden).index_select(0, rows),
                                      x.narrow(1, hidden, 2 * hidden).contiguous(),
                                      spans,
                                      heads,
                                      dropout_of(p),
                                      extent);
        });

        expect_close(
            values,
            with_gradient(
                qkv, [&](const at::Tensor& x) { return reference(x, p).index_select(0, rows); }),
            1e-13);
    }
}

TEST(SequenceAttentionTest, WithoutGradientsTheOutputIsTheSame) {
    const AttentionSpans spans{begins_of(lengths), begins_of(lengths), {}};
    const at::Tensor qkv = projections(at::kDouble);
    const at::Tensor with = sequence_attention(
        qkv.detach().requires_grad_(), {}, spans, heads, dropout_of(0.3), extent);

    const at::NoGradGuard no_grad;
    const at::Tensor without = sequence_attention(qkv, {}, spans, heads, dropout_of(0.3), extent);

    EXPECT_TRUE(without.equal(with));
}

}  // namespace
}  // namespace hetseq::detail
