#include "task/bert_masking.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace hetseq {
namespace {

constexpr std::int64_t rows_in_corpus = 40;

std::unique_ptr<Collator> collator(std::uint64_t seed = 1) {
    return make_masking_collator(
        {.size = 1000, .mask = 3, .begin = 1, .separator = 2}, {.most_predictions = 100}, seed);
}

std::int64_t length_of(std::int64_t sample) {
    return 10 + sample % 31;
}

// [CLS] first [SEP] second [SEP], the second from place 4 on.
TensorDict rows_of(const std::vector<std::int64_t>& samples) {
    std::vector<std::int32_t> tokens, second, labels;
    std::vector<std::int64_t> offsets{0};
    for (const std::int64_t sample : samples) {
        const std::int64_t length = length_of(sample);
        for (std::int64_t i = 0; i < length; ++i)
            tokens.push_back(i == 0 ? 1
                             : i == 3 || i == length - 1
                                 ? 2
                                 : static_cast<std::int32_t>(100 + sample + i));
        offsets.push_back(static_cast<std::int64_t>(tokens.size()));
        second.push_back(4);
        labels.push_back(static_cast<std::int32_t>(sample % 2));
    }
    return {{"input_ids", at::tensor(tokens, at::kInt)},
            {"input_ids_offsets", at::tensor(offsets, at::kLong)},
            {"second_segments", at::tensor(second, at::kInt)},
            {"next_sentence_labels", at::tensor(labels, at::kInt).to(at::kChar)}};
}

MicroBatch collated(const std::vector<std::int64_t>& samples,
                    std::int64_t epoch = 0,
                    std::uint64_t seed = 1) {
    return collator(seed)->collate_for(
        rows_of(samples), at::tensor(samples, at::kLong), {.epoch = epoch});
}

TEST(MaskingCollatorTest, RowsArePaddedAndTheirSegmentsTold) {
    const MicroBatch batch = collated({0, 5});  // 10 and 15 tokens

    const at::Tensor mask = batch.tensors.at("attention_mask");
    EXPECT_EQ(mask.sizes(), (std::vector<std::int64_t>{2, 15}));
    EXPECT_TRUE(mask.sum(1).equal(at::tensor({10, 15}, at::kLong)));
    EXPECT_TRUE(batch.tensors.at("segment_ids").sum(1).equal(at::tensor({6, 11}, at::kLong)));
    EXPECT_EQ(batch.tensors.at("segment_ids")[0][3].item<std::int64_t>(), 0);
    EXPECT_EQ(batch.tensors.at("segment_ids")[0][4].item<std::int64_t>(), 1);
    EXPECT_EQ(batch.tensors.at("input_ids").narrow(1, 10, 5)[0].sum().item<std::int64_t>(), 0);
    EXPECT_TRUE(batch.tensors.at("next_sentence_labels").equal(at::tensor({0, 1}, at::kLong)));
}

TEST(MaskingCollatorTest, LabelsAreTheTokensThatStoodThere) {
    std::vector<std::int64_t> samples(rows_in_corpus);
    for (std::int64_t i = 0; i < rows_in_corpus; ++i)
        samples[static_cast<std::size_t>(i)] = i;
    const MicroBatch batch = collated(samples);
    const std::int64_t longest = batch.tensors.at("input_ids").size(1);
    const at::Tensor positions = batch.tensors.at("masked_positions");
    const at::Tensor labels = batch.tensors.at("masked_labels");

    std::int64_t expected = 0;  // round(0.15 n), halves to the even number
    for (const std::int64_t sample : samples)
        expected += std::lrint(0.15 * static_cast<double>(length_of(sample)));
    EXPECT_EQ(batch.weights, (std::vector<double>{static_cast<double>(expected), 40}));
    ASSERT_EQ(labels.numel(), expected);
    for (std::int64_t i = 0; i < labels.numel(); ++i) {
        const std::int64_t position = positions[i].item<std::int64_t>();
        EXPECT_EQ(labels[i].item<std::int64_t>(), 100 + position / longest + position % longest);
    }
    const at::Tensor shown = batch.tensors.at("input_ids").flatten().index_select(0, positions);
    EXPECT_GT((shown == 3).sum().item<std::int64_t>(), 6 * expected / 10);
}

// How a batch is cut and what stands beside a sample does not change its mask.
TEST(MaskingCollatorTest, MasksDependOnSeedEpochAndSampleAlone) {
    const auto first_row = [](const MicroBatch& batch) {
        return batch.tensors.at("input_ids")[0].narrow(0, 0, length_of(25));
    };
    const at::Tensor alone = first_row(collated({25}, 2));

    EXPECT_TRUE(alone.equal(first_row(collated({25, 30, 1}, 2))));
    EXPECT_FALSE(alone.equal(first_row(collated({25}, 3))));
    EXPECT_FALSE(alone.equal(first_row(collated({25}, 2, 9))));
}

TEST(MaskingCollatorTest, WithoutAnEpochItIsTheFirst) {
    const MicroBatch batch = collator()->collate(rows_of({7}), at::tensor({7}, at::kLong));

    EXPECT_TRUE(batch.tensors.at("input_ids").equal(collated({7}).tensors.at("input_ids")));
}

}  // namespace
}  // namespace hetseq
