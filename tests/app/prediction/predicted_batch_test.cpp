#include "app/prediction/predicted_batch.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(PredictedBatchTest, AMessageBringsAllOfIt) {
    const PredictedBatch sent{
        .begin = 77,
        .samples = 3,
        .predictions = {{"scores", at::randn({3, 2, 4}).transpose(1, 2)},
                        {"flags", at::tensor({1, 0, 1}).to(at::kBool)},
                        {"words", at::arange(5, at::kInt), at::tensor({2, 0, 3}, at::kLong)},
                        {"none", at::zeros({3, 0}, at::kHalf)}},
        .seconds = 0.25,
        .ends_block = true};

    const PredictedBatch got = predicted_from_bytes(to_bytes(sent));

    EXPECT_EQ(got.begin, 77);
    EXPECT_EQ(got.samples, 3);
    EXPECT_EQ(got.seconds, 0.25);
    EXPECT_TRUE(got.ends_block);
    ASSERT_EQ(got.predictions.size(), sent.predictions.size());
    for (std::size_t i = 0; i < got.predictions.size(); ++i) {
        const Prediction &a = sent.predictions[i], &b = got.predictions[i];
        EXPECT_EQ(a.name, b.name);
        EXPECT_EQ(a.values.scalar_type(), b.values.scalar_type());
        EXPECT_TRUE(a.values.equal(b.values));
        ASSERT_EQ(a.row_lengths.defined(), b.row_lengths.defined());
        if (a.row_lengths.defined()) {
            EXPECT_TRUE(a.row_lengths.equal(b.row_lengths));
        }
    }
}

}  // namespace
}  // namespace hetseq
