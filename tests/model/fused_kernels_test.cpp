// The GPU's kernels of Transformers, run on the CPU by the emulator with whole warps, against
// LibTorch's operators and hetseq's dropout on the CPU.
// clang-format off: kernels take their words from the emulator, which comes first.
#include "stand_in/simt/simt.hpp"
// clang-format on

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "hetseq/model/dropout.hpp"

#include "model/kernel_numbers.hpp"
#include "model/kernels/fused/attention_softmax.cuh"
#include "model/kernels/fused/head_rows.cuh"

namespace hetseq::detail {
namespace {

using test::key;
using test::numbers;

struct AttentionCase {
    std::int64_t samples, heads, queries, columns;
    bool is_causal, has_padding;
    double p;
};

class AttentionKernelTest : public testing::TestWithParam<AttentionCase> {
protected:
    // (n, S): the last keys of later samples are padding.
    at::Tensor keys() const {
        const AttentionCase c = GetParam();
        const at::Tensor lengths = c.columns - at::arange(c.samples, at::kLong) * 3;
        return at::arange(c.columns, at::kLong).unsqueeze(0) < lengths.unsqueeze(1);
    }
    at::Tensor ids() const { return at::arange(GetParam().samples, at::kLong) * 11 + 2; }

    // (n, heads, T, S) after dropout.
    at::Tensor reference(const at::Tensor& scores) const {
        const AttentionCase c = GetParam();
        at::Tensor scaled = scores * 0.25;
        const double hidden = std::numeric_limits<double>::lowest();
        if (c.has_padding)
            scaled =
                scaled.masked_fill(keys().logical_not().view({c.samples, 1, 1, c.columns}), hidden);
        if (c.is_causal)
            scaled =
                scaled.masked_fill(at::ones({c.queries, c.columns}, at::kBool).triu(1), hidden);
        return counter_dropout(scaled.softmax(3), c.p, key, ids(), {200, 300});
    }

    ScorePlaces places(const at::Tensor& keys, const at::Tensor& ids) const {
        const AttentionCase c = GetParam();
        ScorePlaces places{.rows = static_cast<std::uint32_t>(c.samples * c.heads * c.queries),
                           .heads = static_cast<std::uint32_t>(c.heads),
                           .queries = static_cast<std::uint32_t>(c.queries),
                           .columns = static_cast<std::uint32_t>(c.columns),
                           .is_causal = c.is_causal,
                           .scale = 0.25,
                           .keys = c.has_padding ? keys.const_data_ptr<bool>() : nullptr};
        if (c.p > 0) {
            places.mask = make_dropout_mask(c.p, key);
            places.keep_scale = places.mask.scale();
            places.sample_ids = ids.const_data_ptr<std::int64_t>();
            places.grid = dropout_grid({.rows = c.heads * c.queries,
                                        .columns = c.columns,
                                        .inner_rows = c.queries,
                                        .most_inner_rows = 200,
                                        .most_row_chunks = 3});
        }
        return places;
    }

    template <class T>
    std::pair<at::Tensor, at::Tensor> by_kernel(const at::Tensor& scores,
                                                const at::Tensor& gradient) const {
        const at::Tensor seen = keys(), samples = ids();
        const ScorePlaces where = places(seen, samples);
        at::Tensor dropped = at::empty_like(scores), of_scores = at::empty_like(scores);
        at::Tensor sums = at::empty({std::int64_t{where.rows}},
                                    std::is_same_v<T, double> ? at::kDouble : at::kFloat);
        auto* const log_sums = sums.mutable_data_ptr<ComputedType<T>>();
        simt::launch({row_blocks<Warp>(where.rows)}, {row_block_threads}, [&] {
            attention_probabilities<T, Warp>(
                scores.const_data_ptr<T>(), dropped.mutable_data_ptr<T>(), log_sums, where);
        });
        simt::launch({row_blocks<Warp>(where.rows)}, {row_block_threads}, [&] {
            attention_probabilities_backward<T, Warp>(scores.const_data_ptr<T>(),
                                                      log_sums,
                                                      gradient.const_data_ptr<T>(),
                                                      of_scores.mutable_data_ptr<T>(),
                                                      where);
        });
        return {dropped, of_scores};
    }
};

INSTANTIATE_TEST_SUITE_P(Cases,
                         AttentionKernelTest,
                         testing::Values(AttentionCase{2, 3, 5, 37, false, true, 0.2},
                                         AttentionCase{3, 2, 9, 9, true, false, 0.1},
                                         AttentionCase{1, 2, 3, 270, false, false, 0.5},
                                         AttentionCase{2, 1, 4, 1, false, false, 0.3},
                                         AttentionCase{2, 2, 7, 12, true, true, 0},
                                         AttentionCase{2, 1, 1, 31, false, true, 0.9}));

TEST_P(AttentionKernelTest, IsTheComposedOperatorsInBothDirections) {
    const AttentionCase c = GetParam();
    const at::Tensor scores = numbers({c.samples, c.heads, c.queries, c.columns}, 1, 4);
    const at::Tensor gradient = numbers(scores.sizes(), 2);
    const at::Tensor leaf = scores.clone().requires_grad_();
    const at::Tensor expected = reference(leaf);
    expected.backward(gradient);

    const auto [dropped, of_scores] = by_kernel<double>(scores, gradient);

    EXPECT_TRUE(at::allclose(dropped, expected.detach(), 1e-12, 1e-14));
    EXPECT_TRUE(at::allclose(of_scores, leaf.grad(), 1e-11, 1e-13));
}

TEST_P(AttentionKernelTest, In16BitsRoundsWhatItGives) {
    const AttentionCase c = GetParam();
    const at::Tensor scores =
        numbers({c.samples, c.heads, c.queries, c.columns}, 1, 4).to(at::kBFloat16);
    const at::Tensor gradient = numbers(scores.sizes(), 2).to(at::kBFloat16);
    const at::Tensor leaf = scores.to(at::kDouble).requires_grad_();
    const at::Tensor expected = reference(leaf);
    expected.backward(gradient.to(at::kDouble));

    const auto [dropped, of_scores] = by_kernel<c10::BFloat16>(scores, gradient);

    EXPECT_TRUE(at::allclose(dropped.to(at::kDouble), expected.detach(), 0.004, 1e-7));
    EXPECT_TRUE(at::allclose(of_scores.to(at::kDouble), leaf.grad(), 0.004, 1e-6));
}

// A row of nothing but padding is even, and gives no gradient.
TEST(AttentionKernel, ARowWithoutKeysIsFinite) {
    const at::Tensor scores = numbers({1, 1, 2, 5}, 3), keys = at::zeros({1, 5}, at::kBool);
    at::Tensor dropped = at::empty_like(scores), of_scores = at::empty_like(scores);
    at::Tensor sums = at::empty({2}, at::kDouble);
    const ScorePlaces where{
        .rows = 2, .queries = 2, .columns = 5, .keys = keys.const_data_ptr<bool>()};
    simt::launch({1}, {row_block_threads}, [&] {
        attention_probabilities<double, Warp>(scores.const_data_ptr<double>(),
                                              dropped.mutable_data_ptr<double>(),
                                              sums.mutable_data_ptr<double>(),
                                              where);
    });
    simt::launch({1}, {row_block_threads}, [&] {
        attention_probabilities_backward<double, Warp>(scores.const_data_ptr<double>(),
                                                       sums.const_data_ptr<double>(),
                                                       scores.const_data_ptr<double>(),
                                                       of_scores.mutable_data_ptr<double>(),
                                                       where);
    });

    EXPECT_TRUE(at::allclose(dropped, at::full_like(dropped, 0.2)));
    EXPECT_TRUE(at::equal(of_scores, at::zeros_like(of_scores)));
}

struct HeadCase {
    std::int64_t samples, length, heads, width;
    int parts;
    bool is_packed;
};

class HeadKernelTest : public testing::TestWithParam<HeadCase> {};

INSTANTIATE_TEST_SUITE_P(Cases,
                         HeadKernelTest,
                         testing::Values(HeadCase{2, 5, 3, 4, 3, false},
                                         HeadCase{3, 7, 2, 8, 3, true},
                                         HeadCase{3, 4, 2, 3, 2, true},
                                         HeadCase{1, 1, 1, 1, 1, false}));

TEST_P(HeadKernelTest, RowsBecomeHeadsAndHeadsBecomeRows) {
    const HeadCase c = GetParam();
    const std::int64_t all = c.samples * c.length, columns = c.heads * c.width;
    // Without the last place of each sample but the first.
    const at::Tensor places =
        at::arange(all, at::kLong)
            .masked_select(
                (at::arange(all, at::kLong) < c.length)
                    .logical_or(at::arange(all, at::kLong).remainder(c.length).ne(c.length - 1)));
    const std::int64_t count = c.is_packed ? places.numel() : all;
    const at::Tensor row_of =
        at::full({all}, -1, at::kLong).index_copy(0, places, at::arange(places.numel(), at::kLong));
    const at::Tensor rows = numbers({count, c.parts * columns}, 9).to(at::kFloat);
    const at::Tensor bias = numbers({c.parts * columns}, 10).to(at::kFloat);
    HeadPlaces where{.samples = static_cast<std::uint32_t>(c.samples),
                     .length = static_cast<std::uint32_t>(c.length),
                     .heads = static_cast<std::uint32_t>(c.heads),
                     .width = static_cast<std::uint32_t>(c.width),
                     .rows = static_cast<std::uint32_t>(count),
                     .parts = c.parts};
    if (c.is_packed) {
        where.places = places.const_data_ptr<std::int64_t>();
        where.row_of = row_of.const_data_ptr<std::int64_t>();
    }
    std::vector<at::Tensor> heads;
    HeadParts<float> to;
    HeadParts<const float> from;
    for (int part = 0; part < c.parts; ++part) {
        heads.push_back(at::full({c.samples * c.heads, c.length, c.width}, -7, at::kFloat));
        to.of[part] = heads.back().mutable_data_ptr<float>();
        from.of[part] = to.of[part];
    }
    at::Tensor back = at::full_like(rows, -7), summed = at::full_like(rows, -7);
    at::Tensor sums = at::full_like(bias, -7);
    const int pack = c.width % 4 == 0 ? 4 : 1;
    const auto blocks = [&](std::int64_t n) {
        return static_cast<unsigned>((n * columns / pack + 255) / 256);
    };

    simt::launch_independent({blocks(all)}, {head_block_threads}, [&] {
        pack == 4 ? heads_of_rows<float, 4>(
                        rows.const_data_ptr<float>(), bias.const_data_ptr<float>(), to, where)
                  : heads_of_rows<float, 1>(
                        rows.const_data_ptr<float>(), bias.const_data_ptr<float>(), to, where);
    });
    simt::launch_independent({blocks(count)}, {head_block_threads}, [&] {
        pack == 4 ? rows_of_heads<float, 4>(from, back.mutable_data_ptr<float>(), where)
                  : rows_of_heads<float, 1>(from, back.mutable_data_ptr<float>(), where);
    });

    const auto and_sums = [&]<int width>() {
        using Columns = ColumnsOf<Pack<float, width>>;
        const auto packs = static_cast<std::uint32_t>(c.parts * columns / width);
        simt::launch({column_blocks<Columns>(packs)}, {Columns::threads}, [&] {
            rows_of_heads_and_sums<float, width, Columns>(
                from, summed.mutable_data_ptr<float>(), sums.mutable_data_ptr<float>(), where);
        });
    };
    pack == 4 ? and_sums.operator()<4>() : and_sums.operator()<1>();

    const at::Tensor biased = rows + bias;
    const at::Tensor padded =
        c.is_packed ? at::zeros({all, rows.size(1)}, rows.options()).index_copy(0, places, biased)
                    : biased;
    const at::Tensor expected =
        padded.view({c.samples, c.length, c.parts, c.heads, c.width}).permute({2, 0, 3, 1, 4});
    for (int part = 0; part < c.parts; ++part)
        EXPECT_TRUE(at::equal(heads[static_cast<std::size_t>(part)],
                              expected[part].reshape({-1, c.length, c.width})))
            << part;
    EXPECT_TRUE(at::equal(back, biased));
    EXPECT_TRUE(at::equal(summed, biased));
    EXPECT_TRUE(at::allclose(sums, biased.sum(0), 1e-5, 1e-5));
}

}  // namespace
}  // namespace hetseq::detail
