#include "hetseq/data/loading/batch_reader.hpp"

#include <set>

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "data/generated_ragged_corpus.hpp"
#include "data/shared_folder_test.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::thrown_by;
using testing::HasSubstr;

/// Hands the rows on as they are.
class RowsCollator final : public Collator {
public:
    MicroBatch collate(const TensorDict& rows, const at::Tensor&) const override {
        MicroBatch batch;
        for (const auto& [name, tensor] : rows)
            batch.tensors[name] = tensor.clone();
        return batch;
    }
};

class BatchReaderTest : public test::SharedFolderTest {
protected:
    // The same samples on all ranks, whatever the number of ranks: batch by batch.
    void expect_batches(BatchReader& reader,
                        std::int64_t size,
                        const std::function<void(const MicroBatch&)>& check) {
        std::int64_t next = 0;
        for (std::int64_t block = 0; block < reader.blocks(); ++block)
            for (const MicroBatch& batch : reader.read(block, RowsCollator())) {
                const std::int64_t expected = std::min(size, reader.samples() - next);
                ASSERT_EQ(batch.samples, expected);
                ASSERT_TRUE(batch.sample_ids.equal(at::arange(next, next + expected)));
                check(batch);
                next += expected;
            }
        EXPECT_EQ(next, reader.samples());
    }
};

TEST_F(BatchReaderTest, BatchesAreConsecutiveSamplesWhateverTheRanks) {
    test::write_bert_like_corpus(world_, folder_, {17, 0, 5000, 301});
    BatchReader reader(world_, folder_.path(), test::bert_like_schema(), 7);

    expect_batches(reader, 7, [](const MicroBatch& batch) {
        const auto ids = batch.sample_ids.accessor<std::int64_t, 1>();
        const auto input = batch.tensors.at("input_ids").accessor<std::int32_t, 2>();
        for (std::int64_t i = 0; i < batch.samples; ++i)
            for (std::int64_t k = 0; k < test::sequence; ++k)
                ASSERT_EQ(input[i][k], test::input_id(ids[i], k));
    });
    EXPECT_GE(reader.blocks(), 32 * world_.size());
}

TEST_F(BatchReaderTest, RowsOfUnequalLength) {
    test::write_ragged_corpus(world_, folder_, {17, 0, 300, 31});
    BatchReader reader(world_, folder_.path(), test::ragged_schema(), 5);

    expect_batches(reader, 5, [](const MicroBatch& batch) {
        const auto ids = batch.sample_ids.accessor<std::int64_t, 1>();
        const auto offsets = batch.tensors.at("source_offsets").accessor<std::int64_t, 1>();
        const auto values = batch.tensors.at("source").accessor<std::int32_t, 1>();
        ASSERT_EQ(offsets[0], 0);
        for (std::int64_t i = 0; i < batch.samples; ++i) {
            ASSERT_EQ(offsets[i + 1] - offsets[i], test::source_length(ids[i]));
            for (std::int64_t k = offsets[i]; k < offsets[i + 1]; ++k)
                ASSERT_EQ(values[k], test::source_value(ids[i], k - offsets[i]));
        }
    });
}

TEST_F(BatchReaderTest, BlocksAreReadInAnyOrder) {
    test::write_bert_like_corpus(world_, folder_, {400});
    BatchReader reader(world_, folder_.path(), test::bert_like_schema(), 8);

    for (std::int64_t block = reader.blocks() - 1; block >= 0; block -= 3) {
        const MicroBatch batch = reader.read(block, RowsCollator()).front();
        const auto first = batch.sample_ids[0].item<std::int64_t>();
        EXPECT_EQ(batch.tensors.at("input_ids")[0][1].item<std::int64_t>(),
                  test::input_id(first, 1));
    }
}

TEST_F(BatchReaderTest, ABadValueIsNamedByTheRankThatReadsIt) {
    on_first_rank([&] {
        auto datasets = test::bert_like_datasets(0, 50, test::Storage::contiguous);
        datasets[0].value = [](auto row, auto) { return row == 30 ? 5000 : 1; };
        test::write_datasets(folder_ / "shard.h5", datasets);
    });
    BatchReader reader(world_, folder_.path(), test::bert_like_schema(), 50);

    const auto thrown = thrown_by([&] { reader.read(0, RowsCollator()); });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr("5000"));
}

TEST_F(BatchReaderTest, MissingTargetsAreLeftOutOfTheSchema) {
    CorpusSchema schema = test::bert_like_schema();
    for (std::size_t i : {2, 3})
        schema.fields[i].is_target = true;
    schema.fields[1].same_row_shape_as = "masked_lm_positions";
    on_first_rank([&] {
        auto datasets = test::bert_like_datasets(0, 50, test::Storage::contiguous);
        datasets.erase(datasets.begin() + 2);
        test::write_datasets(folder_ / "shard.h5", datasets);
    });

    const CorpusSchema found = without_missing_targets(world_, folder_.path(), schema);

    ASSERT_EQ(found.fields.size(), 3u);
    EXPECT_EQ(found.fields[2].name, "next_sentence_labels");
    EXPECT_EQ(found.fields[1].same_row_shape_as, "");
    BatchReader reader(world_, folder_.path(), found, 10);
    EXPECT_EQ(reader.read(0, RowsCollator()).front().tensors.count("masked_lm_positions"), 0u);
}

TEST_F(BatchReaderTest, WhatIsNoTargetMustBeThere) {
    CorpusSchema schema = test::bert_like_schema();
    schema.fields[3].is_target = true;
    on_first_rank([&] {
        auto datasets = test::bert_like_datasets(0, 50, test::Storage::contiguous);
        datasets.erase(datasets.begin());
        test::write_datasets(folder_ / "shard.h5", datasets);
    });

    const auto thrown = thrown_by([&] {
        BatchReader(
            world_, folder_.path(), without_missing_targets(world_, folder_.path(), schema), 10);
    });

    EXPECT_THAT(thrown.text, HasSubstr("'input_ids' is missing"));
    expect_same_on_all_ranks(thrown);
}

}  // namespace
}  // namespace hetseq
