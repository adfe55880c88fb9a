#include "hetseq/model/dropout.hpp"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "model/kernels/dropout_mask.hpp"

namespace hetseq {
namespace {

constexpr double p = 0.25;

at::Tensor ids(std::int64_t begin, std::int64_t end) {
    return at::arange(begin, end, at::kLong);
}

at::Tensor mask_of(at::IntArrayRef shape, const DropoutKey& key, const at::Tensor& sample_ids) {
    return counter_dropout(at::ones(shape, at::kDouble), p, key, sample_ids).ne(0);
}

double share_kept(const at::Tensor& mask) {
    return mask.to(at::kDouble).mean().item<double>();
}

// Share of equal elements of two masks; p^2 + (1-p)^2 for independent ones.
double agreement(const at::Tensor& a, const at::Tensor& b) {
    return share_kept(a.eq(b));
}

// Five standard deviations of the mean of n coin throws.
double tolerance(std::int64_t n) {
    return 5 * 0.5 / std::sqrt(static_cast<double>(n));
}

TEST(DropoutTest, MatchesOnePhiloxCallPerElement) {
    const DropoutKey key{0x123456789ABCDEF0u, 77, 5};
    const std::int64_t per_sample = 3 * 100;  // not a multiple of a chunk
    const auto mask = detail::make_dropout_mask(p, key);
    const at::Tensor sample_ids = at::tensor({std::int64_t{7}, (std::int64_t{1} << 40) + 3});

    const at::Tensor dropped =
        counter_dropout(at::ones({2, 3, 100}, at::kDouble), p, key, sample_ids).view({2, -1});

    for (std::int64_t s = 0; s < 2; ++s)
        for (std::int64_t e = 0; e < per_sample; ++e) {
            const std::int64_t within = e % 128;
            const auto call = static_cast<std::uint32_t>(e / 128 * 16 + within % 16);
            const auto bits = philox4x32(
                mask.counter(static_cast<std::uint64_t>(sample_ids[s].item<std::int64_t>()), call),
                mask.key);
            const bool keep =
                detail::DropoutMask::slot_of(bits, static_cast<int>(within / 16)) < mask.threshold;
            ASSERT_EQ(dropped[s][e].item<double>(), keep ? 1 / (1 - p) : 0.0) << s << ", " << e;
        }
}

TEST(DropoutTest, MaskDoesNotDependOnHowSamplesAreCut) {
    const DropoutKey key{1, 2, 3};
    const at::Tensor x = at::rand({6, 5, 37}, at::kDouble);

    const at::Tensor whole = counter_dropout(x, p, key, ids(10, 16));
    const at::Tensor parts = at::cat({counter_dropout(x.narrow(0, 0, 1), p, key, ids(10, 11)),
                                      counter_dropout(x.narrow(0, 1, 4), p, key, ids(11, 15)),
                                      counter_dropout(x.narrow(0, 5, 1), p, key, ids(15, 16))});

    EXPECT_TRUE(whole.equal(parts));
}

TEST(DropoutTest, MaskFollowsTheSampleNotItsPlace) {
    const DropoutKey key{1, 2, 3};
    const at::Tensor order =
        at::tensor({std::int64_t{3}, std::int64_t{0}, std::int64_t{2}, std::int64_t{1}});

    const at::Tensor mask = mask_of({4, 200}, key, ids(0, 4));
    const at::Tensor permuted = mask_of({4, 200}, key, order);

    EXPECT_TRUE(permuted.equal(mask.index_select(0, order)));
}

TEST(DropoutTest, FloatAndDoubleHaveTheSameMask) {
    const DropoutKey key{1, 2, 3};

    const at::Tensor narrow = counter_dropout(at::ones({3, 1000}, at::kFloat), p, key, ids(0, 3));

    EXPECT_TRUE(narrow.ne(0).equal(mask_of({3, 1000}, key, ids(0, 3))));
}

TEST(DropoutTest, RowsOfOneSampleMayBeTheFirstDimension) {
    const DropoutKey key{1, 2, 3};
    const at::Tensor x = at::rand({2, 8, 33}, at::kDouble);

    const at::Tensor flat = counter_dropout(x.view({16, 33}), p, key, ids(4, 6));

    EXPECT_TRUE(flat.view({2, 8, 33}).equal(counter_dropout(x, p, key, ids(4, 6))));
}

TEST(DropoutTest, KeepsTheShareItShould) {
    const std::int64_t n = 64 * 10000;
    for (const double dropped : {0.1, 0.25, 0.5, 0.9}) {
        const at::Tensor out =
            counter_dropout(at::ones({64, 10000}, at::kDouble), dropped, {1, 2, 3}, ids(0, 64));

        EXPECT_NEAR(share_kept(out.ne(0)), 1 - dropped, tolerance(n));
        EXPECT_NEAR(out.mean().item<double>(), 1, tolerance(n) / (1 - dropped));
    }
}

TEST(DropoutTest, MasksOfSeedsUpdatesLayersAndSamplesAreIndependent) {
    const DropoutKey key{1, 2, 3};
    const std::int64_t samples = 64, n = samples * 5000;
    const auto mask = [&](const DropoutKey& other, std::int64_t first_id) {
        return mask_of({samples, 5000}, other, ids(first_id, first_id + samples));
    };
    const double independent = p * p + (1 - p) * (1 - p);

    const at::Tensor base = mask(key, 0);

    EXPECT_NEAR(agreement(base, mask({2, 2, 3}, 0)), independent, tolerance(n));
    EXPECT_NEAR(agreement(base, mask({1, 3, 3}, 0)), independent, tolerance(n));
    EXPECT_NEAR(agreement(base, mask({1, 2, 4}, 0)), independent, tolerance(n));
    EXPECT_NEAR(agreement(base, mask(key, 1)), independent, tolerance(n));
    EXPECT_NEAR(agreement(base, mask(key, std::int64_t{1} << 32)), independent, tolerance(n));
    EXPECT_NEAR(agreement(base, base.roll(1, 1)), independent, tolerance(n));
}

TEST(DropoutTest, BackwardUsesTheForwardMask) {
    const at::Tensor x = at::ones({3, 500}, at::kDouble).requires_grad_();
    const at::Tensor out = counter_dropout(x, p, {1, 2, 3}, ids(0, 3));

    out.sum().backward();

    EXPECT_TRUE(x.grad().equal(out.detach()));
}

TEST(DropoutTest, GradientIsTheDifferenceQuotient) {
    const DropoutKey key{1, 2, 3};
    const at::Tensor x = at::rand({2, 9}, at::kDouble).requires_grad_();
    const at::Tensor weights = at::rand({2, 9}, at::kDouble);
    const auto loss = [&](const at::Tensor& at_x) {
        return (counter_dropout(at_x, p, key, ids(0, 2)).sin() * weights).sum();
    };

    loss(x).backward();

    const at::NoGradGuard no_grad;
    const double h = 1e-6;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
        const at::Tensor step = at::zeros({18}, at::kDouble).index_fill_(0, at::tensor(i), h);
        const at::Tensor difference =
            (loss(x + step.view({2, 9})) - loss(x - step.view({2, 9}))) / (2 * h);
        EXPECT_NEAR(x.grad().view(-1)[i].item<double>(), difference.item<double>(), 1e-8);
    }
}

TEST(DropoutTest, ZeroProbabilityIsTheIdentity) {
    const at::Tensor x = at::rand({2, 9});

    EXPECT_TRUE(counter_dropout(x, 0, {1, 2, 3}, ids(0, 2)).is_same(x));
}

TEST(DropoutTest, NoSamplesGiveNoElements) {
    const at::Tensor x = at::empty({0, 9}).requires_grad_();

    const at::Tensor out = counter_dropout(x, p, {1, 2, 3}, ids(0, 0));
    out.sum().backward();

    EXPECT_EQ(out.sizes(), x.sizes());
}

TEST(DropoutTest, RowsOfTokensHaveTheMaskOfTheirPositions) {
    const DropoutKey key{1, 2, 3};
    const at::Tensor sequence = at::tensor({2, 0, 2, 1, 0}, at::kLong);
    const at::Tensor position = at::tensor({6, 0, 6, 3, 5}, at::kLong);
    for (const std::int64_t columns : {5, 128, 200}) {
        const at::Tensor x = at::rand({3, 7, columns}, at::kDouble);
        const at::Tensor rows = x.index({sequence, position}).requires_grad_();

        const at::Tensor out = token_dropout(rows, p, key, sequence + 10, position);
        out.sum().backward();

        const at::Tensor whole = counter_dropout(x, p, key, ids(10, 13));
        EXPECT_TRUE(out.equal(whole.index({sequence, position}))) << columns;
        EXPECT_TRUE(rows.grad().ne(0).equal(out.ne(0))) << columns;
    }
}

TEST(DropoutTest, ATransposedInputKeepsItsLogicalElements) {
    const DropoutKey key{1, 2, 3};
    const at::Tensor x = at::rand({2, 7, 30}, at::kDouble).transpose(1, 2);

    const at::Tensor out = counter_dropout(x, p, key, ids(0, 2));

    EXPECT_TRUE(out.equal(counter_dropout(x.contiguous(), p, key, ids(0, 2))));
}

}  // namespace
}  // namespace hetseq
