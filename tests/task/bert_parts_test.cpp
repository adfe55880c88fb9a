#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "hetseq/task/parts.hpp"

namespace hetseq {
namespace {

TensorDict two_rows() {
    return {{"input_ids", at::tensor({101, 7, 103, 102, 101, 103, 9, 102}, at::kInt).view({2, 4})},
            {"input_mask", at::tensor({1, 1, 1, 1, 1, 1, 1, 0}, at::kChar).view({2, 4})},
            {"segment_ids", at::tensor({0, 0, 1, 1, 0, 0, 0, 0}, at::kChar).view({2, 4})},
            {"masked_lm_positions", at::tensor({2, 0, 1, 2}, at::kInt).view({2, 2})},
            {"masked_lm_ids", at::tensor({8, 0, 6, 5}, at::kInt).view({2, 2})},
            {"next_sentence_labels", at::tensor({0, 1}, at::kChar)}};
}

TEST(PretrainingBatchingTest, TakesMaskedEntriesThatAreNotPadding) {
    const auto collator = builtin_parts().batchings.get("bert-pretraining")({});

    const MicroBatch batch = collator->collate(two_rows(), at::tensor({0, 1}, at::kLong));

    // Row 0 masks position 2; row 1 positions 1 and 2: flat indices 2, 4 + 1, 4 + 2.
    EXPECT_TRUE(batch.tensors.at("masked_positions").equal(at::tensor({2, 5, 6}, at::kLong)));
    EXPECT_TRUE(batch.tensors.at("masked_labels").equal(at::tensor({8, 6, 5}, at::kLong)));
    EXPECT_EQ(batch.weights, (std::vector<double>{3, 2}));
    EXPECT_TRUE(batch.tensors.at("next_sentence_labels").equal(at::tensor({0, 1}, at::kLong)));
}

TEST(PretrainingBatchingTest, RowsWithoutMaskedTokensWeighNothing) {
    TensorDict rows = two_rows();
    rows["masked_lm_ids"] = at::zeros({2, 2}, at::kInt);

    const MicroBatch batch = builtin_parts().batchings.get("bert-pretraining")({})->collate(
        rows, at::tensor({0, 1}, at::kLong));

    EXPECT_EQ(batch.weights, (std::vector<double>{0, 2}));
    EXPECT_EQ(batch.tensors.at("masked_positions").numel(), 0);
}

TEST(PretrainingSchemaTest, BoundsFollowTheModelsConfiguration) {
    const CorpusSchema schema =
        builtin_parts().datasets.get("bert-pretraining")({.model_config = "tiny"});

    ASSERT_EQ(schema.fields.size(), 6U);
    EXPECT_EQ(schema.fields[0].name, "input_ids");
    EXPECT_EQ(schema.fields[0].maximum, 30521);
    EXPECT_EQ(schema.fields[0].max_row_length, 512);
}

TEST(PretrainingBatchingTest, TargetsMayBeMissingAndPredictionsNeedNone) {
    TensorDict rows = two_rows();
    for (const char* target : {"masked_lm_positions", "masked_lm_ids", "next_sentence_labels"})
        rows.erase(target);
    const Parts parts = builtin_parts();
    PartOptions options;
    options.model_config = "tiny";
    const auto model = parts.models.get("bert")(options);
    torch::manual_seed(1);
    for (at::Tensor& parameter : model->parameters())
        parameter.detach().normal_(0, 0.1);

    const MicroBatch batch =
        parts.batchings.get("bert-pretraining")({})->collate(rows, at::tensor({0, 1}, at::kLong));
    const std::vector<Prediction> predictions = model->predict(batch);

    ASSERT_EQ(predictions.size(), 2u);
    EXPECT_EQ(predictions[0].name, "embeddings");
    EXPECT_EQ(predictions[0].values.sizes(), (at::IntArrayRef{2, 128}));
    EXPECT_EQ(predictions[1].name, "next_sentence");
    EXPECT_TRUE(predictions[1].values.sum(1).allclose(at::ones({2}), 1e-6));
    // The last token of the second row is padding: what it is does not matter.
    rows["input_ids"].select(0, 1).select(0, 3).fill_(55);
    const auto same = model->predict(
        parts.batchings.get("bert-pretraining")({})->collate(rows, at::tensor({0, 1}, at::kLong)));
    EXPECT_TRUE(same[0].values.allclose(predictions[0].values, 1e-5, 1e-6));
    rows["input_ids"].select(0, 1).select(0, 1).fill_(55);
    const auto other = model->predict(
        parts.batchings.get("bert-pretraining")({})->collate(rows, at::tensor({0, 1}, at::kLong)));
    EXPECT_FALSE(other[0].values[1].allclose(predictions[0].values[1], 1e-3, 1e-3));
    EXPECT_TRUE(other[0].values[0].allclose(predictions[0].values[0], 1e-5, 1e-6));
}

}  // namespace
}  // namespace hetseq
