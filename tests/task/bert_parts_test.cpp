#include <ATen/ATen.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hetseq
