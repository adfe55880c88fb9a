// The GPU's kernel, run on the CPU by the emulator, against the CPU's own.
// clang-format off: kernels take their words from the emulator, which comes first.
#include "stand_in/simt/simt.hpp"
// clang-format on

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "model/kernels/counter_dropout.cuh"
#include "model/kernels/counter_dropout.hpp"

namespace hetseq::detail {
namespace {

struct Case {
    DropoutLayout layout;
    std::int64_t samples = 1;
};

DropoutMask mask() {
    DropoutMask mask;
    mask.key = {{11, 22}};
    mask.update = 3;
    mask.layer = 4;
    mask.threshold = 49152;
    return mask;
}

template <class T>
at::Tensor by_kernel(const at::Tensor& x,
                     const DropoutLayout& layout,
                     const at::Tensor& ids,
                     unsigned sample_blocks) {
    const at::Tensor out = at::empty_like(x);
    const DropoutGrid grid = dropout_grid(layout);
    simt::launch_independent({dropout_blocks(grid), sample_blocks}, {dropout_block_threads}, [&] {
        drop(x.const_data_ptr<T>(),
             out.mutable_data_ptr<T>(),
             ids.const_data_ptr<std::int64_t>(),
             ids.numel(),
             mask(),
             grid,
             static_cast<ComputedType<T>>(mask().scale()));
    });
    return out;
}

template <class T>
void run_tokens(const at::Tensor& x,
                const at::Tensor& out,
                const at::Tensor& ids,
                const at::Tensor& positions) {
    const TokenGrid grid = token_grid(x.size(0), x.size(1));
    simt::launch_independent({dropout_blocks(grid)}, {dropout_block_threads}, [&] {
        drop_tokens(x.const_data_ptr<T>(),
                    out.mutable_data_ptr<T>(),
                    ids.const_data_ptr<std::int64_t>(),
                    positions.const_data_ptr<std::int64_t>(),
                    mask(),
                    grid,
                    static_cast<ComputedType<T>>(mask().scale()));
    });
}

TEST(CounterDropoutKernelTest, GivesTheBitsOfTheCpu) {
    const std::vector<Case> cases{
        {{1, 1, 1, 1, 1}, 1},
        {{1, 127, 1, 1, 1}, 3},
        {{1, 128, 1, 1, 1}, 2},
        {{3, 129, 1, 1, 2}, 2},
        {{12, 33, 4, 7, 5}, 3},  // rows in groups of four of at most seven
        {{5, 1000, 5, 5, 8}, 2}};
    for (const Case& one : cases) {
        ASSERT_TRUE(fits_dropout_grid(one.layout));
        const at::Tensor x = at::randn({one.samples, one.layout.elements()}, at::kDouble);
        const at::Tensor ids = at::arange(one.samples) + ((std::int64_t{1} << 33) + 5);
        const at::Tensor expected = at::empty_like(x);
        counter_dropout_cpu(x, expected, mask(), one.layout, ids);

        const auto all = static_cast<unsigned>(one.samples);
        EXPECT_TRUE(by_kernel<double>(x, one.layout, ids, all).equal(expected))
            << one.layout.rows << " rows of " << one.layout.columns;
        EXPECT_TRUE(by_kernel<double>(x, one.layout, ids, 1).equal(expected))
            << "one block for all samples, " << one.layout.columns;
        const at::Tensor narrow = x.to(at::kFloat), narrow_expected = at::empty_like(narrow);
        counter_dropout_cpu(narrow, narrow_expected, mask(), one.layout, ids);
        EXPECT_TRUE(by_kernel<float>(narrow, one.layout, ids, all).equal(narrow_expected))
            << "fp32, " << one.layout.columns;
    }
}

DropoutMatrices matrices(std::vector<std::uint32_t> sizes) {
    DropoutMatrices places;
    places.columns = sizes.back();
    sizes.pop_back();
    places.rows = sizes.back();
    sizes.pop_back();
    for (; !sizes.empty(); sizes.pop_back()) {
        places.outer[places.outer_dims++] = sizes.back();
        places.matrices *= sizes.back();
    }
    return places;
}

template <class T>
void run_matrices(const at::Tensor& x,
                  const at::Tensor& out,
                  const DropoutMatrices& places,
                  const at::Tensor& ids,
                  unsigned sample_blocks) {
    const MatrixGrid grid{places};
    simt::launch_independent({dropout_blocks(grid), sample_blocks}, {dropout_block_threads}, [&] {
        drop_matrices(x.const_data_ptr<T>(),
                      out.mutable_data_ptr<T>(),
                      ids.const_data_ptr<std::int64_t>(),
                      ids.numel(),
                      mask(),
                      grid,
                      static_cast<ComputedType<T>>(mask().scale()));
    });
}

TEST(CounterDropoutKernelTest, MatricesHaveTheBitsOfTheCpu) {
    const at::Tensor ids = at::arange(3) + ((std::int64_t{1} << 33) + 5);
    for (const std::vector<std::uint32_t>& sizes :
         std::vector<std::vector<std::uint32_t>>{{8, 16},
                                                 {9, 17},
                                                 {1, 300},
                                                 {300, 1},
                                                 {21, 3},
                                                 {4, 33, 35},
                                                 {2, 1, 3, 2, 1, 2, 9, 5},
                                                 {2, 3, 10, 1000},
                                                 {50, 7, 7},
                                                 {200, 9, 2},
                                                 {3, 60, 28},
                                                 {9, 63},
                                                 {17, 64},
                                                 {9, 2100},
                                                 {90, 20, 1}}) {
        const DropoutMatrices places = matrices(sizes);
        const std::int64_t elements = std::int64_t{places.matrices} * places.rows * places.columns;
        ASSERT_TRUE(fits_matrix_grid(places.matrices, places.rows, places.columns));
        for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
            const at::Tensor x = at::randn({3, elements}, type);
            const at::Tensor expected = at::empty_like(x), out = at::full_like(x, -1);
            matrix_dropout_cpu(x, expected, mask(), places, ids);
            const int threads = at::get_num_threads();
            at::set_num_threads(3);
            const at::Tensor in_parts = at::empty_like(x);
            matrix_dropout_cpu(x, in_parts, mask(), places, ids);
            at::set_num_threads(threads);
            EXPECT_TRUE(in_parts.equal(expected)) << elements << " elements, three threads";

            const auto run = type == at::kDouble ? run_matrices<double> : run_matrices<float>;
            run(x, out, places, ids, 3);
            run(x, x, places, ids, 1);

            EXPECT_TRUE(out.equal(expected)) << elements << " elements, " << type;
            EXPECT_TRUE(x.equal(expected)) << "in place, one block for all samples, " << type;
        }
    }
}

TEST(CounterDropoutKernelTest, MayWorkInPlace) {
    const DropoutLayout layout{2, 200, 1, 1, 2};
    const at::Tensor x = at::randn({3, 400}, at::kFloat), ids = at::arange(3);
    const at::Tensor expected = at::empty_like(x);
    counter_dropout_cpu(x, expected, mask(), layout, ids);

    const DropoutGrid grid = dropout_grid(layout);
    simt::launch_independent({dropout_blocks(grid), 3}, {dropout_block_threads}, [&] {
        drop(x.const_data_ptr<float>(),
             x.mutable_data_ptr<float>(),
             ids.const_data_ptr<std::int64_t>(),
             3,
             mask(),
             grid,
             static_cast<float>(mask().scale()));
    });

    EXPECT_TRUE(x.equal(expected));
}

// Rounded to bf16, the scale of 10 % would be 0.16 % too small.
TEST(CounterDropoutKernelTest, KeepsTheMeanIn16Bits) {
    DropoutMask tenth = mask();
    tenth.threshold = 58982;
    const DropoutLayout layout{1, 8192, 1, 1, 1};
    const DropoutGrid grid = dropout_grid(layout);
    const at::Tensor x = at::rand({1, 8192}).add_(1).to(at::kBFloat16), ids = at::arange(1);
    const at::Tensor out = at::empty_like(x);
    simt::launch_independent({dropout_blocks(grid), 1}, {dropout_block_threads}, [&] {
        drop(x.const_data_ptr<c10::BFloat16>(),
             out.mutable_data_ptr<c10::BFloat16>(),
             ids.const_data_ptr<std::int64_t>(),
             1,
             tenth,
             grid,
             static_cast<float>(tenth.scale()));
    });

    const at::Tensor kept = out.ne(0);
    const double ratio = out.masked_select(kept).to(at::kDouble).sum().item<double>() /
                         x.masked_select(kept).to(at::kDouble).sum().item<double>();
    EXPECT_NEAR(ratio, tenth.scale(), 3e-4);
}

TEST(CounterDropoutKernelTest, RowsOfTokensHaveTheBitsOfTheCpu) {
    const at::Tensor ids = at::tensor({2, 0, 2, 1, 0}, at::kLong) + ((std::int64_t{1} << 33) + 5);
    // Of 130 columns, the last row begins behind 2^32 elements of its sample.
    const at::Tensor positions = at::tensor({6, 0, 127, 3, 40'000'000}, at::kLong);
    for (const std::int64_t columns : {1, 5, 127, 128, 130, 200, 384}) {
        ASSERT_TRUE(fits_token_grid(5, columns));
        for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
            const at::Tensor x = at::randn({5, columns}, type);
            const at::Tensor expected = at::empty_like(x), out = at::full_like(x, -1);
            token_dropout_cpu(x, expected, mask(), ids, positions);

            const auto run = type == at::kDouble ? run_tokens<double> : run_tokens<float>;
            run(x, out, ids, positions);
            run(x, x, ids, positions);

            EXPECT_TRUE(out.equal(expected)) << columns << " columns, " << type;
            EXPECT_TRUE(x.equal(expected)) << "in place, " << columns << " columns, " << type;
        }
    }
}

// No tensor is so large here: the arithmetic of indices alone.
TEST(CounterDropoutKernelTest, IndicesOfSamplesGoBeyond32Bits) {
    constexpr std::uint32_t columns = 1u << 20;
    constexpr std::int64_t samples = (std::int64_t{1} << 32) / columns + 2;
    const DropoutGrid grid = dropout_grid({1, columns, 1, 1, 1});
    std::vector<std::int64_t> ids(samples);
    // Only the last sample's first elements exist: the kernel is asked for that block alone.
    const at::Tensor x = at::ones({columns}, at::kFloat);
    const at::Tensor out = at::full({columns}, -1, at::kFloat);
    const std::int64_t begin = (samples - 1) * columns;

    simt::grid_size = {dropout_blocks(grid), static_cast<unsigned>(samples)};
    simt::block_size = {dropout_block_threads};
    simt::block_index = {0, static_cast<unsigned>(samples - 1)};
    simt::thread_index = {0};
    drop(x.const_data_ptr<float>() - begin,
         out.mutable_data_ptr<float>() - begin,
         ids.data(),
         samples,
         mask(),
         grid,
         1.0F);

    EXPECT_EQ((out != -1).sum().item<std::int64_t>(), DropoutMask::slots);
    EXPECT_NE(out[0].item<float>(), -1);
}

TEST(CounterDropoutKernelTest, ALayoutThatNeedsMoreBitsIsRecognised) {
    EXPECT_FALSE(fits_dropout_grid({1, std::int64_t{1} << 32, 1, 1, 1}));
    EXPECT_FALSE(fits_dropout_grid({std::int64_t{1} << 28, 100, 1, 1, 1}));
    EXPECT_TRUE(fits_dropout_grid({std::int64_t{1} << 27, 100, 1, 1, 1}));
    EXPECT_EQ(dropout_sample_blocks(1 << 20), 65535U);
    EXPECT_FALSE(fits_matrix_grid(1, 1, std::int64_t{1} << 29));
    EXPECT_TRUE(fits_matrix_grid(1, 1, (std::int64_t{1} << 29) - 128));
    EXPECT_FALSE(fits_matrix_grid(std::int64_t{1} << 22, 1024, 8));
    EXPECT_FALSE(fits_token_grid(1, std::int64_t{1} << 32));
    EXPECT_FALSE(fits_token_grid(std::int64_t{1} << 28, 128));
    EXPECT_FALSE(fits_token_grid(std::int64_t{1} << 27, 100));  // of two chunks each
    EXPECT_TRUE(fits_token_grid(std::int64_t{1} << 27, 128));
}

}  // namespace
}  // namespace hetseq::detail
