// The GPU's kernels of dropout, residual and normalisation, run on the CPU by the emulator with
// whole warps and blocks, against LibTorch's operators and hetseq's dropout on the CPU.
// clang-format off: kernels take their words from the emulator, which comes first.
#include "stand_in/simt/simt.hpp"
// clang-format on

#include <optional>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "hetseq/model/dropout.hpp"

#include "model/kernel_numbers.hpp"
#include "model/kernels/fused/residual_norm.cuh"

namespace hetseq::detail {
namespace {

using test::key;
using test::numbers;

struct NormCase {
    std::int64_t samples, rows_of_sample, columns;
    bool is_packed;
    double p;
};

class NormKernelTest : public testing::TestWithParam<NormCase> {
protected:
    NormKernelTest() {
        const NormCase c = GetParam();
        rows = c.samples * c.rows_of_sample;
        ids = at::arange(c.samples, at::kLong) * 5 + 1;
        if (c.is_packed) {
            ids = ids.repeat_interleave(c.rows_of_sample);
            positions = at::arange(rows, at::kLong).remainder(c.rows_of_sample) * 3 + 1;
        }
        x = numbers({rows, c.columns}, 4);
        residual = numbers({rows, c.columns}, 5);
        weight = numbers({c.columns}, 6);
        bias = numbers({c.columns}, 7);
        gradient = numbers({rows, c.columns}, 8);
        x_bias = numbers({c.columns}, 9);
    }

    // `leaves` are x, residual, weight, bias and x's bias.
    at::Tensor reference(const std::vector<at::Tensor>& leaves) const {
        const NormCase c = GetParam();
        const at::Tensor biased = leaves[0] + leaves[4];
        const at::Tensor dropped = c.is_packed ? token_dropout(biased, c.p, key, ids, positions)
                                               : counter_dropout(biased, c.p, key, ids);
        return at::layer_norm(leaves[1] + dropped, {c.columns}, leaves[2], leaves[3], 1e-5);
    }

    TokenPlaces places() const {
        const NormCase c = GetParam();
        TokenPlaces places{.rows = static_cast<std::uint32_t>(rows),
                           .columns = static_cast<std::uint32_t>(c.columns),
                           .eps = 1e-5};
        if (c.p > 0) {
            places.mask = make_dropout_mask(c.p, key);
            places.keep_scale = places.mask.scale();
            places.sample_ids = ids.const_data_ptr<std::int64_t>();
            places.positions = c.is_packed ? positions.const_data_ptr<std::int64_t>() : nullptr;
            places.rows_of_sample = static_cast<std::uint32_t>(rows / ids.numel());
        }
        return places;
    }

    std::int64_t rows = 0;
    at::Tensor ids, positions, x, residual, weight, bias, x_bias, gradient;
};

INSTANTIATE_TEST_SUITE_P(Cases,
                         NormKernelTest,
                         testing::Values(NormCase{2, 5, 37, false, 0.2},
                                         NormCase{3, 7, 128, false, 0.1},
                                         NormCase{2, 4, 300, true, 0.5},
                                         NormCase{1, 50, 16, true, 0.1},
                                         NormCase{2, 3, 1, false, 0.3},
                                         NormCase{3, 3, 70, false, 0}));

// What a kernel gives: the output, the gradients of x, residual, weight, bias and x's bias, and the
// output in x's type. `given`: the same without the output. An undefined residual or an absent bias
// of x has no gradient.
template <class T>
std::vector<at::Tensor> norm_by_kernel(const std::vector<at::Tensor>& given,
                                       const at::Tensor& of_wide,
                                       const std::optional<at::Tensor>& of_narrow,
                                       const TokenPlaces& places) {
    using Value = ComputedType<T>;
    const at::Tensor& x = given[0];
    const bool has_residual = given[1].defined(), has_x_bias = given.size() == 5;
    const auto* const residual = has_residual ? given[1].const_data_ptr<Value>() : nullptr;
    const std::int64_t rows = places.rows;
    at::Tensor sums = at::empty(x.sizes(), given[2].options()), wide = at::empty_like(sums);
    at::Tensor means = at::empty({rows}, sums.options()), inverses = at::empty_like(means);
    at::Tensor narrow = at::empty_like(x), of_x = at::empty_like(x);
    at::Tensor of_residual = at::full_like(sums, -7);
    const NormParameters<const Value> parameters{
        given[2].const_data_ptr<Value>(),
        given[3].const_data_ptr<Value>(),
        has_x_bias ? given[4].const_data_ptr<Value>() : nullptr};
    at::Tensor of_parameters = at::full({3, places.columns}, -7, sums.options());
    auto* const of = of_parameters.mutable_data_ptr<Value>();
    simt::launch({row_blocks<Warp>(rows)}, {row_block_threads}, [&] {
        residual_norm<T, Warp>(x.const_data_ptr<T>(),
                               residual,
                               parameters,
                               {sums.mutable_data_ptr<Value>(),
                                means.mutable_data_ptr<Value>(),
                                inverses.mutable_data_ptr<Value>(),
                                wide.mutable_data_ptr<Value>(),
                                narrow.mutable_data_ptr<T>()},
                               places);
    });
    const NormGradients<T> kept{sums.const_data_ptr<Value>(),
                                means.const_data_ptr<Value>(),
                                inverses.const_data_ptr<Value>(),
                                of_wide.const_data_ptr<Value>(),
                                of_narrow ? of_narrow->const_data_ptr<T>() : nullptr};
    simt::launch({row_blocks<Warp>(rows)}, {row_block_threads}, [&] {
        residual_norm_backward<T, Warp>(
            kept,
            parameters.weight,
            has_residual ? of_residual.mutable_data_ptr<Value>() : nullptr,
            of_x.mutable_data_ptr<T>(),
            places);
    });
    using Columns = ColumnsOf<Value>;
    simt::launch({column_blocks<Columns>(places.columns)}, {Columns::threads}, [&] {
        norm_parameters_backward<T, Columns>(
            kept,
            of_x.const_data_ptr<T>(),
            {of, of + places.columns, has_x_bias ? of + 2 * places.columns : nullptr},
            places.rows,
            places.columns);
    });
    return {wide, of_x, of_residual, of_parameters[0], of_parameters[1], of_parameters[2], narrow};
}

TEST_P(NormKernelTest, IsTheComposedOperatorsInBothDirections) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& tensor : {x, residual, weight, bias, x_bias})
        leaves.push_back(tensor.clone().requires_grad_());
    const at::Tensor expected = reference(leaves);
    expected.backward(gradient);

    const auto found = norm_by_kernel<double>(
        {x, residual, weight, bias, x_bias}, gradient, std::nullopt, places());

    EXPECT_TRUE(at::allclose(found[0], expected.detach(), 1e-11, 1e-12));
    for (std::size_t i = 0; i < leaves.size(); ++i)
        EXPECT_TRUE(at::allclose(found[i + 1], leaves[i].grad(), 1e-9, 1e-11)) << i;
}

// The same number of both outputs' gradients is added, and a bias that is not there gets none.
TEST_P(NormKernelTest, AddsTheGradientsOfBothOutputs) {
    const std::vector<at::Tensor> given{x, residual, weight, bias};

    const auto found = norm_by_kernel<double>(given, gradient * 0.25, gradient * 0.75, places());

    const auto expected = norm_by_kernel<double>(given, gradient, std::nullopt, places());
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-11, 1e-11)) << i;
    EXPECT_TRUE(at::equal(found[5], at::full_like(found[5], -7)));
}

TEST_P(NormKernelTest, WithoutAResidualIsThatOfZeros) {
    const auto found =
        norm_by_kernel<double>({x, {}, weight, bias, x_bias}, gradient, std::nullopt, places());

    auto expected = norm_by_kernel<double>(
        {x, at::zeros_like(x), weight, bias, x_bias}, gradient, std::nullopt, places());
    expected[2].fill_(-7);  // has not been written
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(at::equal(found[i], expected[i])) << i;
}

TEST_P(NormKernelTest, DropsItsOutput) {
    const NormCase c = GetParam();
    TokenPlaces where = places();
    where.drops_output = true;
    at::Tensor sums = at::empty_like(x), wide = at::empty_like(x), narrow = at::empty_like(x);
    at::Tensor means = at::empty({rows}, at::kDouble), inverses = at::empty_like(means);

    simt::launch({row_blocks<Warp>(rows)}, {row_block_threads}, [&] {
        residual_norm<double, Warp>(
            nullptr,
            x.const_data_ptr<double>(),
            {weight.const_data_ptr<double>(), bias.const_data_ptr<double>(), nullptr},
            {sums.mutable_data_ptr<double>(),
             means.mutable_data_ptr<double>(),
             inverses.mutable_data_ptr<double>(),
             wide.mutable_data_ptr<double>(),
             narrow.mutable_data_ptr<double>()},
            where);
    });

    const at::Tensor normed = at::layer_norm(x, {c.columns}, weight, bias, 1e-5);
    const at::Tensor expected = c.is_packed ? token_dropout(normed, c.p, key, ids, positions)
                                            : counter_dropout(normed, c.p, key, ids);
    EXPECT_TRUE(at::allclose(wide, expected, 1e-11, 1e-12));
    EXPECT_TRUE(at::equal(narrow, wide));
}

TEST_P(NormKernelTest, In16BitsGivesTheResultInBothTypes) {
    const at::Tensor narrow_x = x.to(at::kHalf), of_narrow = gradient.to(at::kHalf);
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& tensor : {narrow_x.to(at::kDouble), residual, weight, bias, x_bias})
        leaves.push_back(tensor.clone().requires_grad_());
    const at::Tensor expected = reference(leaves);
    expected.backward(gradient + of_narrow.to(at::kDouble));
    std::vector<at::Tensor> given{narrow_x};
    for (const at::Tensor& tensor : {residual, weight, bias, x_bias})
        given.push_back(tensor.to(at::kFloat));

    const auto found =
        norm_by_kernel<c10::Half>(given, gradient.to(at::kFloat), of_narrow, places());

    EXPECT_TRUE(at::allclose(found[0].to(at::kDouble), expected.detach(), 1e-4, 1e-4));
    EXPECT_TRUE(at::equal(found[6], found[0].to(at::kHalf)));
    EXPECT_TRUE(at::allclose(found[1].to(at::kDouble), leaves[0].grad(), 2e-3, 2e-3));
    EXPECT_TRUE(at::allclose(found[2].to(at::kDouble), leaves[1].grad(), 1e-3, 1e-3));
    EXPECT_TRUE(at::allclose(found[5].to(at::kDouble), leaves[4].grad(), 1e-2, 1e-2));
}

}  // namespace
}  // namespace hetseq::detail
