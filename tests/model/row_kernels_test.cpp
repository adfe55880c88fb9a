// The GPU's kernels of embeddings and activations, run on the CPU by the emulator with whole warps
// and blocks, against LibTorch's operators and hetseq's dropout on the CPU.
// clang-format off: kernels take their words from the emulator, which comes first.
#include "stand_in/simt/simt.hpp"
// clang-format on

#include <cmath>
#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include "hetseq/model/dropout.hpp"

#include "model/kernel_numbers.hpp"
#include "model/kernels/fused/bias_activation.cuh"
#include "model/kernels/fused/embedding_sum.cuh"

namespace hetseq::detail {
namespace {

using test::key;
using test::numbers;

at::Tensor composed(const at::Tensor& x, Activation activation) {
    switch (activation) {
        case Activation::gelu:
            return at::gelu(x);
        case Activation::gelu_tanh:
            return at::gelu(x, "tanh");
        case Activation::relu:
            return at::relu(x);
        case Activation::silu:
            return at::silu(x);
        case Activation::tanh:
            return at::tanh(x);
    }
    return {};
}

// Rows, columns and the activation.
class ActivationKernelTest
    : public testing::TestWithParam<std::tuple<std::int64_t, std::int64_t, Activation>> {
protected:
    std::int64_t rows = std::get<0>(GetParam()), columns = std::get<1>(GetParam());
    Activation activation = std::get<2>(GetParam());
    at::Tensor product = numbers({rows, columns}, 11, 2), bias = numbers({columns}, 12);
    at::Tensor gradient = numbers({rows, columns}, 13);

    // The output and the gradients of product and bias.
    template <class T>
    std::vector<at::Tensor> by_kernel(at::ScalarType type) const {
        using Value = ComputedType<T>;
        const at::ScalarType computed = type == at::kDouble ? at::kDouble : at::kFloat;
        const at::Tensor x = product.to(type).clone(), shift = bias.to(computed);
        const at::Tensor of_out = gradient.to(type);
        at::Tensor out = is_kept_output(activation) ? x : at::empty_like(x);
        at::Tensor of_x = at::empty_like(x), of_bias = at::empty_like(shift);
        const auto n = static_cast<std::uint32_t>(rows), m = static_cast<std::uint32_t>(columns);
        const auto* const added = shift.const_data_ptr<Value>();
        simt::launch(
            {row_blocks<Warp>(rows), (m + activation_columns - 1) / activation_columns},
            {row_block_threads},
            [&] {
                bias_activation<T, Warp>(
                    x.const_data_ptr<T>(), added, out.mutable_data_ptr<T>(), n, m, activation);
            });
        using Columns = ColumnsOf<T>;
        simt::launch({column_blocks<Columns>(m)}, {Columns::threads}, [&] {
            bias_activation_backward<T, Columns>(x.const_data_ptr<T>(),
                                                 added,
                                                 of_out.const_data_ptr<T>(),
                                                 of_x.mutable_data_ptr<T>(),
                                                 of_bias.mutable_data_ptr<Value>(),
                                                 n,
                                                 m,
                                                 activation);
        });
        return {out, of_x, of_bias};
    }

    void expect_composed(const std::vector<at::Tensor>& found,
                         at::ScalarType type,
                         double relative,
                         double absolute) const {
        const at::Tensor x = product.to(type).to(at::kDouble).requires_grad_();
        const at::Tensor shift = bias.clone().requires_grad_();
        const at::Tensor expected = composed(x + shift, activation);
        expected.backward(gradient.to(type).to(at::kDouble));
        const auto close = [&](const at::Tensor& a, const at::Tensor& b, double bound) {
            return at::allclose(a.to(at::kDouble), b, relative, bound);
        };
        EXPECT_TRUE(close(found[0], expected.detach(), absolute));
        EXPECT_TRUE(close(found[1], x.grad(), absolute));
        EXPECT_TRUE(close(found[2], shift.grad(), absolute * std::sqrt(static_cast<double>(rows))));
    }
};

INSTANTIATE_TEST_SUITE_P(Cases,
                         ActivationKernelTest,
                         testing::Combine(testing::Values(1, 300),
                                          testing::Values(9, 600),
                                          testing::Values(Activation::gelu,
                                                          Activation::gelu_tanh,
                                                          Activation::relu,
                                                          Activation::silu,
                                                          Activation::tanh)));

TEST_P(ActivationKernelTest, IsTheComposedOperatorsInBothDirections) {
    expect_composed(by_kernel<double>(at::kDouble), at::kDouble, 1e-10, 1e-12);
}

TEST_P(ActivationKernelTest, IsClose16BitsWide) {
    expect_composed(by_kernel<c10::BFloat16>(at::kBFloat16), at::kBFloat16, 0.02, 0.02);
}

struct EmbeddingCase {
    std::int64_t samples, length, columns;
    bool is_packed, has_segments;
    double scale, p;
};

class EmbeddingKernelTest : public testing::TestWithParam<EmbeddingCase> {
protected:
    EmbeddingKernelTest() {
        const EmbeddingCase c = GetParam();
        const std::int64_t rows = c.samples * c.length;
        ids = at::arange(rows, at::kLong).mul(7).remainder(11);
        segment_ids = at::arange(rows, at::kLong).remainder(2);
        sample_ids = at::arange(c.samples, at::kLong) * 5 + 1;
        if (c.is_packed) {
            sample_ids = sample_ids.repeat_interleave(c.length);
            positions = at::arange(rows, at::kLong).remainder(c.length) * 3 + 1;
        }
        tables = {numbers({11, c.columns}, 14),
                  numbers({c.length * 3, c.columns}, 15),
                  numbers({2, c.columns}, 16)};
    }

    at::Tensor reference(const at::Tensor& words) const {
        const EmbeddingCase c = GetParam();
        at::Tensor sum = at::embedding(words, ids) * c.scale;
        sum = sum +
              at::embedding(tables[1],
                            c.is_packed ? positions : at::arange(ids.numel()).remainder(c.length));
        if (c.has_segments)
            sum = sum + at::embedding(tables[2], segment_ids);
        return c.is_packed ? token_dropout(sum, c.p, key, sample_ids, positions)
                           : counter_dropout(sum, c.p, key, sample_ids);
    }

    TokenPlaces places() const {
        const EmbeddingCase c = GetParam();
        TokenPlaces places{.rows = static_cast<std::uint32_t>(ids.numel()),
                           .columns = static_cast<std::uint32_t>(c.columns)};
        if (c.p == 0)
            return places;
        places.mask = make_dropout_mask(c.p, key);
        places.keep_scale = places.mask.scale();
        places.sample_ids = sample_ids.const_data_ptr<std::int64_t>();
        places.positions = c.is_packed ? positions.const_data_ptr<std::int64_t>() : nullptr;
        places.rows_of_sample = static_cast<std::uint32_t>(ids.numel() / sample_ids.numel());
        return places;
    }

    template <class Value>
    EmbeddingTables<Value> places_in(const std::vector<at::Tensor>& of) const {
        const EmbeddingCase c = GetParam();
        const auto* const by_row = segment_ids.const_data_ptr<std::int64_t>();
        return {of[0].const_data_ptr<Value>(),
                ids.const_data_ptr<std::int64_t>(),
                c.scale,
                of[1].const_data_ptr<Value>(),
                c.is_packed ? positions.const_data_ptr<std::int64_t>() : nullptr,
                static_cast<std::uint32_t>(c.length),
                c.has_segments ? of[2].const_data_ptr<Value>() : nullptr,
                c.has_segments ? by_row : nullptr};
    }

    at::Tensor ids, segment_ids, sample_ids, positions;
    std::vector<at::Tensor> tables;  // words, positions, segments
};

INSTANTIATE_TEST_SUITE_P(Cases,
                         EmbeddingKernelTest,
                         testing::Values(EmbeddingCase{3, 5, 37, false, true, 1, 0},
                                         EmbeddingCase{2, 4, 128, true, true, 1, 0.2},
                                         EmbeddingCase{2, 7, 300, false, false, 17, 0.1}));

TEST_P(EmbeddingKernelTest, IsTheComposedOperatorsInBothDirections) {
    const TokenPlaces where = places();
    const at::Tensor words = tables[0].clone().requires_grad_();
    const at::Tensor expected = reference(words);
    const at::Tensor gradient = numbers(expected.sizes(), 17);
    expected.backward(gradient);
    at::Tensor sum = at::empty_like(gradient), of_rows = at::empty_like(gradient);
    const at::Tensor part = gradient * 0.25, rest = gradient * 0.75;

    simt::launch({row_blocks<Warp>(where.rows)}, {row_block_threads}, [&] {
        embedding_sum<double, Warp>(
            places_in<double>(tables), sum.mutable_data_ptr<double>(), nullptr, where);
    });
    simt::launch({row_blocks<Warp>(where.rows)}, {row_block_threads}, [&] {
        outputs_backward<double, Warp>(part.const_data_ptr<double>(),
                                       rest.const_data_ptr<double>(),
                                       of_rows.mutable_data_ptr<double>(),
                                       GetParam().scale,
                                       where);
    });

    EXPECT_TRUE(at::allclose(sum, expected.detach(), 1e-12, 1e-13));
    EXPECT_TRUE(at::allclose(
        at::embedding_dense_backward(of_rows, ids, 11, -1, false), words.grad(), 1e-11, 1e-11));
}

TEST_P(EmbeddingKernelTest, In16BitsGivesTheSumInBothTypes) {
    const TokenPlaces where = places();
    std::vector<at::Tensor> fp32;
    for (const at::Tensor& table : tables)
        fp32.push_back(table.to(at::kFloat));
    at::Tensor wide = at::empty({ids.numel(), GetParam().columns}, at::kFloat);
    at::Tensor narrow = at::empty(wide.sizes(), at::kHalf);

    simt::launch({row_blocks<Warp>(where.rows)}, {row_block_threads}, [&] {
        embedding_sum<c10::Half, Warp>(places_in<float>(fp32),
                                       wide.mutable_data_ptr<float>(),
                                       narrow.mutable_data_ptr<c10::Half>(),
                                       where);
    });

    EXPECT_TRUE(at::allclose(wide.to(at::kDouble), reference(tables[0]), 1e-5, 1e-5));
    EXPECT_TRUE(at::equal(narrow, wide.to(at::kHalf)));
}

}  // namespace
}  // namespace hetseq::detail
