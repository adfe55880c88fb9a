#include "transformer_ops.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>

#include "hetseq/util/error.hpp"
#include "hetseq/model/autocast.hpp"

#include "fused_ops.hpp"

namespace hetseq::detail {

namespace {

/// Finite, so that a sequence of nothing but padding gives no NaN.
double lowest(at::ScalarType type) {
    double value = 0;
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "lowest", [&] {
        value = static_cast<double>(std::numeric_limits<scalar_t>::lowest());
    });
    return value;
}

// The rows (n * length, outputs) of the product.
Projected without_bias(const Projection& of) {
    if (!of.x.defined())
        return {};
    return {linear(of.x, {of.layer.weight, {}}).flatten(0, 1), of.layer.bias};
}

}  // namespace

at::Tensor dropped(const at::Tensor& x, const Dropout& dropout) {
    if (dropout.positions.defined())
        return token_dropout(x, dropout.p, dropout.key, dropout.sample_ids, dropout.positions);
    return counter_dropout(x, dropout.p, dropout.key, dropout.sample_ids);
}

Rows rows_of(const at::Tensor& x) {
    return {x, x.is_cuda() ? narrowed(x) : x};
}

at::Tensor linear(const at::Tensor& x, const Affine& affine) {
    return x.is_cuda() && has_narrow_products(at::kCUDA)
               ? narrow_linear(narrowed(x), affine)
               : at::linear(x, affine.weight, affine.bias);
}

at::Tensor linear_activation(const at::Tensor& x, const Affine& affine, Activation activation) {
    if (x.is_cuda())
        return fused_linear_activation(narrowed(x), affine, activation);
    const at::Tensor inner = linear(x, affine);
    switch (activation) {
        case Activation::gelu:
            return at::gelu(inner);
        case Activation::gelu_tanh:
            return at::gelu(inner, "tanh");
        case Activation::relu:
            return at::relu(inner);
        case Activation::silu:
            return at::silu(inner);
        case Activation::tanh:
            return at::tanh(inner);
    }
    HETSEQ_ASSERT(false);
}

at::Tensor attention(const at::Tensor& queries,
                     const at::Tensor& keys_values,
                     std::int64_t heads,
                     const AttentionMask& mask,
                     const Dropout& dropout,
                     const DropoutExtent& extent) {
    const std::int64_t n = queries.size(0);
    const std::vector<at::Tensor> parts =
        keys_values.defined() ? keys_values.chunk(2, 2) : queries.chunk(3, 2);
    const at::Tensor& query = keys_values.defined() ? queries : parts[0];
    const at::Tensor& key = parts[parts.size() - 2];
    const at::Tensor& value = parts.back();
    const std::int64_t hidden = query.size(2), width = hidden / heads;
    const auto split = [&](const at::Tensor& x) {
        return x.unflatten(2, {heads, width}).transpose(1, 2);  // (n, heads, length, width)
    };
    const at::Tensor seen =
        mask.keys.defined() ? mask.keys.view({n, 1, 1, mask.keys.size(1)}) : at::Tensor{};
    if (dropout.p == 0)
        return at::scaled_dot_product_attention(
                   split(query),
                   split(key),
                   split(value),
                   seen.defined() ? std::make_optional(seen) : std::nullopt,
                   /*dropout_p=*/0,
                   mask.is_causal)
            .transpose(1, 2)
            .reshape({n, query.size(1), hidden});
    at::Tensor scores = at::matmul(split(query).div(std::sqrt(static_cast<double>(width))),
                                   split(key).transpose(2, 3));  // (n, heads, T, S)
    const double hidden_score = lowest(scores.scalar_type());
    if (seen.defined())
        scores = scores.masked_fill(seen.logical_not(), hidden_score);
    if (mask.is_causal)
        scores = scores.masked_fill(
            at::ones({query.size(1), key.size(1)}, scores.options().dtype(at::kBool)).triu(1),
            hidden_score);
    const at::Tensor probabilities =
        counter_dropout(scores.softmax(3), dropout.p, dropout.key, dropout.sample_ids, extent);
    return at::matmul(probabilities, split(value))
        .transpose(1, 2)
        .reshape({n, query.size(1), hidden});
}

at::Tensor projected_attention(const Projection& queries,
                               const Projection& keys_values,
                               std::int64_t heads,
                               const AttentionMask& mask,
                               const Dropout& dropout,
                               const DropoutExtent& extent) {
    const auto product = [](const Projection& of) {
        return of.x.defined() ? linear(of.x, of.layer) : at::Tensor{};
    };
    if (!queries.x.is_cuda() || dropout.p == 0)
        return attention(product(queries), product(keys_values), heads, mask, dropout, extent);
    const std::int64_t n = queries.x.size(0);
    const Projection& keys = keys_values.x.defined() ? keys_values : queries;
    return fused_attention(without_bias(queries),
                           without_bias(keys_values),
                           {n, queries.x.size(1)},
                           {n, keys.x.size(1)},
                           heads,
                           mask,
                           dropout,
                           extent)
        .unflatten(0, {n, queries.x.size(1)});
}

at::Tensor self_attention(const at::Tensor& qkv,
                          const at::Tensor& key_mask,
                          std::int64_t heads,
                          const Dropout& dropout,
                          const DropoutExtent& extent) {
    const std::int64_t n = qkv.size(0), length = qkv.size(1), hidden = qkv.size(2) / 3;
    const std::int64_t width = hidden / heads;
    const at::Tensor split = qkv.view({n, length, 3, heads, width}).permute({2, 0, 3, 1, 4});
    at::Tensor scores = at::matmul(split[0], split[1].transpose(2, 3))
                            .div(std::sqrt(static_cast<double>(width)));  // (n, heads, T, T)
    if (key_mask.defined())
        scores = scores.masked_fill(key_mask.logical_not().view({n, 1, 1, length}),
                                    lowest(scores.scalar_type()));
    const at::Tensor probabilities =
        counter_dropout(scores.softmax(3), dropout.p, dropout.key, dropout.sample_ids, extent);
    return at::matmul(probabilities, split[2]).transpose(1, 2).reshape({n, length, hidden});
}

Rows linear_dropout_add_norm(const at::Tensor& x,
                             const Affine& linear,
                             const at::Tensor& residual,
                             const Affine& norm,
                             double eps,
                             const Dropout& dropout) {
    if (x.is_cuda())
        return fused_dropout_add_norm(
            detail::linear(x, {linear.weight, {}}), linear.bias, residual, norm, eps, dropout);
    const at::Tensor sum = residual + dropped(detail::linear(x, linear), dropout);
    return rows_of(at::layer_norm(sum, norm.weight.sizes(), norm.weight, norm.bias, eps));
}

CrossEntropy linear_cross_entropy(const at::Tensor& x,
                                  const Affine& linear,
                                  const at::Tensor& labels,
                                  CountCorrect count_correct) {
    const at::Tensor logits = detail::linear(x, linear);
    CrossEntropy result;
    result.loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
    if (count_correct == CountCorrect::yes)
        result.correct = logits.detach().argmax(1).eq(labels).sum();
    return result;
}

}  // namespace hetseq::detail
