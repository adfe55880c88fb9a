// Ragged fields from file to rows: through the blocks of a shared cache, on any number of ranks.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "hetseq/comm/mpi/shared_window.hpp"
#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/block_reader.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/data/files/ragged_extents.hpp"

#include "data/blocks/row_copy.hpp"
#include "data/error_text.hpp"
#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::Storage;
using LengthFormula = std::int64_t (*)(std::int64_t);

const std::vector<std::int64_t> sizes{17, 0, 120, 1, 0, 62};

// A shuffle of all samples.
std::vector<PlacedSample> shuffled(std::int64_t n) {
    std::vector<PlacedSample> placed;
    for (std::int64_t i = 0; i < n; ++i)
        placed.push_back({i * 89 % n, i});
    std::reverse(placed.begin(), placed.end());
    return placed;
}

template <class T>
void expect_ragged_rows(const LoadedShare::Rows& rows,
                        const std::string& name,
                        LengthFormula length,
                        const test::ValueFormula& value) {
    const auto ids = rows.sample_ids.accessor<std::int64_t, 1>();
    const auto begins = rows.fields.at(offsets_name(name)).accessor<std::int64_t, 1>();
    const auto values = rows.fields.at(name).accessor<T, 1>();
    ASSERT_EQ(begins.size(0), ids.size(0) + 1);
    ASSERT_EQ(begins[0], 0);
    ASSERT_EQ(begins[ids.size(0)], values.size(0));
    for (std::int64_t i = 0; i < ids.size(0); ++i) {
        ASSERT_EQ(begins[i + 1] - begins[i], length(ids[i])) << name << ", sample " << ids[i];
        for (std::int64_t column = 0; column < length(ids[i]); ++column)
            ASSERT_EQ(static_cast<std::int64_t>(values[begins[i] + column]), value(ids[i], column))
                << name << ", sample " << ids[i];
    }
}

void expect_formula_rows(const LoadedShare::Rows& rows) {
    expect_ragged_rows<std::int32_t>(rows, "source", test::source_length, test::source_value);
    expect_ragged_rows<std::int32_t>(rows, "target", test::target_length, test::target_value);
    expect_ragged_rows<std::int8_t>(rows, "marks", test::target_length, test::mark_value);
    expect_ragged_rows<std::uint8_t>(rows, "places", test::place_length, test::place_value);
    const auto labels = rows.fields.at("labels").accessor<std::int64_t, 1>();
    for (std::int64_t i = 0; i < labels.size(0); ++i)
        ASSERT_EQ(labels[i], test::label_value(rows.sample_ids[i].item<std::int64_t>()));
}

class RaggedFieldsTest : public testing::Test {
protected:
    // All samples, through blocks that the ranks read together and hold in memory that they share.
    LoadedShare::Rows load(const ShardSet& shards,
                           std::int64_t block_length,
                           IoMode io,
                           ReadShare share) {
        const RaggedExtents extents = read_extents(world_, shards, block_length, 0);
        const BlockLayout layout = make_block_layout(shards, block_length, &extents);
        const auto blocks = static_cast<std::int64_t>(extents.block_samples.size());
        const SharedWindow window{node_, layout.slot_bytes * static_cast<std::size_t>(blocks)};
        EXPECT_TRUE(window.shared() || node_.size() == 1);
        std::vector<std::byte> own(window.bytes().size());
        const std::span<std::byte> memory = share == ReadShare::part ? window.bytes() : own;
        BlockReader reader{
            shards, layout, std::make_shared<HostComm>(node_.duplicate()), io, share};
        BlockPlaces places;
        for (std::int64_t block = 0; block < blocks; ++block) {
            const auto slot = memory.subspan(layout.slot_bytes * static_cast<std::size_t>(block),
                                             layout.slot_bytes);
            reader.read(block, slot);
            places[block] = slot.data();
        }
        reader.close();
        LoadedShare::Rows rows = copy(shards, layout, places);
        world_.barrier();  // the memory is shared
        return rows;
    }

    static LoadedShare::Rows copy(const ShardSet& shards,
                                  const BlockLayout& layout,
                                  const BlockPlaces& places) {
        const std::vector<PlacedSample> placed = shuffled(shards.samples());
        const RowLengths in_order = LengthReader{shards}.read(0, shards.samples());
        RowLengths lengths = in_order;
        for (std::size_t k = 0; k < lengths.size(); ++k) {
            for (const PlacedSample& sample : placed)
                lengths[k][static_cast<std::size_t>(sample.row)] =
                    in_order[k][static_cast<std::size_t>(sample.sample)];
        }
        LoadedShare::Rows rows = make_rows(shards, shards.samples(), lengths);
        copy_rows(shards, layout, placed, places, rows);
        return rows;
    }

    HostComm world_ = test::world();
    HostComm node_ = world_.split_by_host();
};

TEST_F(RaggedFieldsTest, RowsAreWhatTheFormulasSay) {
    for (const Storage storage : {Storage::contiguous, Storage::gzip}) {
        const test::SharedFolder folder{world_};
        test::write_ragged_corpus(world_, folder, sizes, storage);
        const ShardSet shards = open_shard_set(world_, folder.path(), test::ragged_schema());
        for (const std::int64_t block_length : {9, 40, 1000}) {
            for (const IoMode io : {IoMode::collective, IoMode::independent, IoMode::serial})
                expect_formula_rows(load(shards, block_length, io, ReadShare::part));
            expect_formula_rows(load(shards, block_length, IoMode::serial, ReadShare::whole));
        }
    }
}

TEST_F(RaggedFieldsTest, NoSampleAtAllIsNoRow) {
    const test::SharedFolder folder{world_};
    test::write_ragged_corpus(world_, folder, {5});
    const ShardSet shards = open_shard_set(world_, folder.path(), test::ragged_schema());

    const LoadedShare::Rows rows = make_rows(shards, 0, RowLengths(4));

    EXPECT_EQ(rows.fields.at("source").numel(), 0);
    EXPECT_EQ(rows.fields.at("source_offsets").numel(), 1);
    EXPECT_EQ(rows.fields.at("source_offsets").item<std::int64_t>(), 0);
}

// As where a file was replaced between the reading of lengths and of blocks.
TEST_F(RaggedFieldsTest, RowsOfAnotherLengthAreNotCopied) {
    const test::SharedFolder folder{world_};
    test::write_ragged_corpus(world_, folder, {5});
    const ShardSet shards = open_shard_set(world_, folder.path(), test::ragged_schema());
    const RaggedExtents extents = read_extents(world_, shards, 5, 0);
    const BlockLayout layout = make_block_layout(shards, 5, &extents);
    std::vector<std::byte> slot(layout.slot_bytes);
    BlockReader reader{shards,
                       layout,
                       std::make_shared<HostComm>(HostComm::serial()),
                       IoMode::serial,
                       ReadShare::whole};
    reader.read(0, slot);
    RowLengths lengths = LengthReader{shards}.read(3, 4);
    ++lengths[1][0];
    LoadedShare::Rows rows = make_rows(shards, 1, lengths);
    const PlacedSample placed[] = {{3, 0}};

    EXPECT_THROW(copy_rows(shards, layout, placed, {{0, slot.data()}}, rows), BadData);
}

TEST_F(RaggedFieldsTest, ACorpusKnowsItsExtents) {
    const test::SharedFolder folder{world_};
    test::write_ragged_corpus(world_, folder, sizes);
    DataContext context{world_, true};

    Corpus corpus{
        context,
        folder.path(),
        test::ragged_schema(),
        {.shuffle_blocks = 2, .block_length = 10, .max_length = 30, .skip_too_long = true}};

    EXPECT_TRUE(corpus.is_ragged());
    EXPECT_EQ(corpus.ragged_fields(), 4U);
    EXPECT_EQ(corpus.row_shapes().at("source"), std::vector<std::int64_t>{-1});
    EXPECT_TRUE(corpus.row_shapes().at("labels").empty());
    EXPECT_EQ(corpus.extents().too_long, 1);
    EXPECT_EQ(corpus.extents().block_samples[3], 9);
    EXPECT_EQ(corpus.extents().longest[0], 22);
    EXPECT_EQ(corpus.extents().borders[1].back(), test::sum_over(0, 200, test::target_length));
}

// A batch by lengths may take samples that the group before left over.
TEST_F(RaggedFieldsTest, ACacheHoldsTwoGroups) {
    const test::SharedFolder folder{world_};
    test::write_ragged_corpus(world_, folder, {20000}, Storage::contiguous);
    DataContext context{world_, true};

    const test::Thrown thrown = test::thrown_by([&] {
        Corpus(context,
               folder.path(),
               test::ragged_schema(),
               {.shuffle_blocks = 1, .block_length = 5000, .cache_mb = 1});
    });

    EXPECT_EQ(thrown.code, ExitCode::config);
    EXPECT_THAT(thrown.text,
                testing::HasSubstr("2 blocks of 5000 samples are held at once and need 2 MiB"));
}

}  // namespace
}  // namespace hetseq
