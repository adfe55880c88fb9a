#include "hetseq/model/coordinate_dropout.hpp"

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

namespace hetseq {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr double dropped = 0.4;

at::Tensor sample_numbers(std::int64_t count) {
    return at::arange(count, at::kLong) + (std::int64_t{1} << 33);
}

at::Tensor kept(const at::Tensor& x, const DropoutKey& key = {7, 3, 0}) {
    return coordinate_dropout(x, dropped, key, sample_numbers(x.size(0))).ne(0);
}

at::Tensor kept(const Shape& shape) {
    return kept(at::ones(shape, at::kDouble));
}

at::Tensor corner(at::Tensor x, at::IntArrayRef sizes) {
    for (std::size_t d = 1; d < sizes.size(); ++d)
        x = x.narrow(static_cast<std::int64_t>(d), 0, sizes[d]);
    return x;
}

TEST(CoordinateDropoutTest, PaddingOfAnyDimensionLeavesTheMasks) {
    for (const Shape& shape : std::vector<Shape>{{2, 3, 5},
                                                 {2, 9, 17},
                                                 {2, 40, 1},
                                                 {2, 1, 40},
                                                 {2, 3, 16, 300},
                                                 {2, 2, 3, 4, 5},
                                                 {2, 1, 2, 1, 3, 2, 1, 2, 1, 9, 3}}) {
        const at::Tensor expected = kept(shape);
        for (std::size_t d = 1; d < shape.size(); ++d)
            for (const std::int64_t more : {1, 7, 16}) {
                Shape longer = shape;
                longer[d] += more;
                EXPECT_TRUE(corner(kept(longer), shape).equal(expected))
                    << at::IntArrayRef{longer} << " against " << at::IntArrayRef{shape};
            }
    }
}

TEST(CoordinateDropoutTest, EachCoordinateCounts) {
    const at::Tensor masks = kept({3, 4, 5, 16, 128});
    std::set<std::vector<std::int64_t>> different;
    const at::Tensor blocks = masks.reshape({3 * 4 * 5 * 2, 8 * 128}).to(at::kLong);
    for (std::int64_t i = 0; i < blocks.size(0); ++i) {
        const at::Tensor block = blocks[i];
        different.insert({block.const_data_ptr<std::int64_t>(),
                          block.const_data_ptr<std::int64_t>() + block.numel()});
    }
    EXPECT_EQ(different.size(), 3U * 4 * 5 * 2);
    EXPECT_FALSE(kept(at::ones({3, 4, 5}), {7, 3, 0}).equal(kept(at::ones({3, 4, 5}), {7, 4, 0})));
    EXPECT_FALSE(kept(at::ones({3, 4, 5}), {7, 3, 0}).equal(kept(at::ones({3, 4, 5}), {8, 3, 0})));
}

// Neighbours along each dimension agree as often as independent draws: p^2 + (1 - p)^2, within five
// standard deviations.
TEST(CoordinateDropoutTest, NeighboursAreIndependent) {
    const at::Tensor masks = kept({32, 16, 32, 32});
    const double keep = 1 - std::round(dropped * 65536) / 65536;
    const auto count = static_cast<double>(masks.numel());
    EXPECT_NEAR(masks.to(at::kDouble).mean().item<double>(),
                keep,
                5 * std::sqrt(keep * (1 - keep) / count));
    const double agree = keep * keep + (1 - keep) * (1 - keep);
    for (std::int64_t d = 0; d < 4; ++d) {
        const std::int64_t size = masks.size(d);
        const at::Tensor same = masks.narrow(d, 1, size - 1).eq(masks.narrow(d, 0, size - 1));
        EXPECT_NEAR(same.to(at::kDouble).mean().item<double>(),
                    agree,
                    5 * std::sqrt(agree * (1 - agree) / static_cast<double>(same.numel())))
            << "dimension " << d;
    }
}

TEST(CoordinateDropoutTest, SamplesMayBeCutAndOrderedInAnyWay) {
    const at::Tensor x = at::randn({5, 3, 9, 20}, at::kFloat);
    const DropoutKey key{7, 3, 0};
    const at::Tensor ids = sample_numbers(5);
    const at::Tensor whole = coordinate_dropout(x, dropped, key, ids);
    const at::Tensor order = at::tensor({3, 0, 4, 2, 1}, at::kLong);

    EXPECT_TRUE(at::cat({coordinate_dropout(x.narrow(0, 0, 2), dropped, key, ids.narrow(0, 0, 2)),
                         coordinate_dropout(x.narrow(0, 2, 3), dropped, key, ids.narrow(0, 2, 3))})
                    .equal(whole));
    EXPECT_TRUE(coordinate_dropout(x.index({order}), dropped, key, ids.index({order}))
                    .equal(whole.index({order})));
}

TEST(CoordinateDropoutTest, CoordinatesAreLogical) {
    const at::Tensor x =
        at::ones({2, 6, 5, 3}, at::kDouble).contiguous(at::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(kept(x).equal(kept({2, 6, 5, 3})));
    const at::Tensor transposed = at::ones({2, 5, 6}, at::kDouble).transpose(1, 2);
    EXPECT_TRUE(kept(transposed).equal(kept({2, 6, 5})));
}

TEST(CoordinateDropoutTest, KeptElementsAreScaled) {
    const at::Tensor x = at::randn({2, 3, 50}, at::kDouble);
    const at::Tensor out = coordinate_dropout(x, 0.25, {1, 2, 0}, sample_numbers(2));
    EXPECT_TRUE(at::where(out.ne(0), x / 0.75, at::zeros_like(x)).allclose(out, 1e-15, 0));
}

TEST(CoordinateDropoutTest, OneCoordinateHasTheMaskOfAnIndex) {
    const at::Tensor x = at::randn({3, 300}, at::kFloat);
    const DropoutKey key{7, 3, 0};
    EXPECT_TRUE(coordinate_dropout(x, dropped, key, sample_numbers(3))
                    .equal(counter_dropout(x, dropped, key, sample_numbers(3))));
}

TEST(CoordinateDropoutTest, NothingIsNoError) {
    for (const Shape& shape : std::vector<Shape>{{0, 3, 4}, {2, 0, 4}, {2, 3, 0}, {2, 0, 3, 4}})
        EXPECT_EQ(kept(shape).sizes(), at::IntArrayRef{shape});
}

TEST(CoordinateDropoutTest, TooManyDimensionsAreAnError) {
    EXPECT_NO_THROW(kept(Shape(11, 1)));
    EXPECT_THROW(kept(Shape(12, 1)), BadConfig);
}

}  // namespace
}  // namespace hetseq
