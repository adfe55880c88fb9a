#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/task/parts.hpp"

namespace hetseq {
namespace {

TEST(ImageBatchingTest, NormalisesAsPyTorchsExample) {
    const Parts parts = builtin_parts();
    const auto collator = parts.batchings.get("images")({});
    at::Tensor pixels = at::zeros({2, 28, 28}, at::kByte);
    pixels[1].fill_(255);

    const MicroBatch batch =
        collator->collate({{"images", pixels}, {"labels", at::tensor({3, 9}, at::kByte)}},
                          at::tensor({5, 6}, at::kLong));

    const at::Tensor images = batch.tensors.at("images");
    EXPECT_EQ(images.sizes(), (at::IntArrayRef{2, 1, 28, 28}));
    EXPECT_NEAR(images[0][0][0][0].item<double>(), (0 - 0.1307) / 0.3081, 1e-6);
    EXPECT_NEAR(images[1][0][0][0].item<double>(), (1 - 0.1307) / 0.3081, 1e-6);
    EXPECT_TRUE(batch.tensors.at("labels").equal(at::tensor({3, 9}, at::kLong)));
    EXPECT_EQ(batch.weights, std::vector<double>{2});
}

TEST(ImageBatchingTest, LabelsMayBeMissing) {
    const auto collator = builtin_parts().batchings.get("images")({});

    const MicroBatch batch = collator->collate({{"images", at::zeros({2, 28, 28}, at::kByte)}},
                                               at::tensor({5, 6}, at::kLong));

    EXPECT_EQ(batch.tensors.count("labels"), 0u);
    EXPECT_EQ(batch.tensors.at("images").size(0), 2);
}

TEST(MnistModelTest, HasTheParametersOfTheExample) {
    const auto model = builtin_parts().models.get("mnist-cnn")({});

    std::int64_t count = 0;
    for (const at::Tensor& parameter : model->parameters())
        count += parameter.numel();
    EXPECT_EQ(count, 1199882);
}

}  // namespace
}  // namespace hetseq
