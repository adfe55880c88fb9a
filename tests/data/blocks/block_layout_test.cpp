#include "hetseq/data/blocks/block_layout.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {
namespace {

// Fields "a" (int32, `columns` a row, chunks of `chunk_rows`) and "b" (uint8).
ShardSet shards(std::int64_t samples, std::int64_t columns, std::int64_t chunk_rows) {
    const CorpusSchema schema{
        "test",
        {{.name = "a", .rank = 2, .type = ElementType::int32, .row_shape = {-1}},
         {.name = "b", .type = ElementType::uint8}}};
    const ShardHeader header{samples,
                             {{{4, true}, {columns}, chunk_rows}, {{1, false}, {}, samples}}};
    return ShardSet({{"one.h5", header, {}, 0}}, schema);
}

TEST(BlockLayoutTest, FieldsLieOnCacheLines) {
    const BlockLayout layout = make_block_layout(shards(100, 3, 0), 10);

    EXPECT_EQ(layout.fields[0].row_bytes, 12U);
    EXPECT_EQ(layout.fields[1].offset, 128U);  // 10 rows of 12 bytes, rounded up to 64
    EXPECT_EQ(layout.slot_bytes, 128U + 64U);
}

TEST(BlockLayoutTest, DefaultLengthIsTwoMebibytes) {
    EXPECT_EQ(default_block_length(shards(1'000'000, 256, 0)), (2 << 20) / 1025);
}

TEST(BlockLayoutTest, DefaultLengthIsWholeChunksOfTheLargestField) {
    EXPECT_EQ(default_block_length(shards(1'000'000, 256, 300)), 2100);   // nearest to 2046
    EXPECT_EQ(default_block_length(shards(1'000'000, 256, 5000)), 5000);  // one at least
    EXPECT_EQ(default_block_length(shards(1'000'000, 256, 1'000'000)),
              2046);  // too large to keep to
}

// A ragged field "r" (int32) of `values` values in chunks of `chunk`, and "b" (uint8).
ShardSet ragged_shards(std::int64_t samples, std::int64_t values, std::int64_t chunk) {
    const CorpusSchema schema{"test",
                              {{.name = "r", .type = ElementType::int32, .is_ragged = true},
                               {.name = "b", .type = ElementType::uint8}}};
    const ShardHeader header{samples,
                             {{{4, true}, {}, chunk, values, {{8, true}, 0}}, {{1, false}, {}, 0}}};
    return ShardSet({{"one.h5", header, {}, 0}}, schema);
}

TEST(BlockLayoutTest, ASlotHoldsTheOffsetsAndValuesOfTheLargestBlock) {
    RaggedExtents extents;
    extents.borders = {{0, 10, 45, 60}};

    const BlockLayout layout = make_block_layout(ragged_shards(30, 60, 0), 10, &extents);

    EXPECT_TRUE(layout.fields[0].is_ragged);
    EXPECT_EQ(layout.fields[0].row_offsets, 0U);
    EXPECT_EQ(layout.fields[0].offset, 128U);         // 11 offsets of 8 bytes, rounded up to 64
    EXPECT_EQ(layout.fields[1].offset, 128U + 192U);  // 35 values of 4 bytes
    EXPECT_EQ(layout.slot_bytes, 128U + 192U + 64U);
    EXPECT_EQ(layout.fields[0].values(1), 35);
}

TEST(BlockLayoutTest, DefaultLengthOfRaggedRowsIsTwoMebibytesOnAverage) {
    // 20 values of 4 bytes, an offset of 8 and 1 byte a sample.
    EXPECT_EQ(default_block_length(ragged_shards(1'000'000, 20'000'000, 0)), (2 << 20) / 89);
    EXPECT_EQ(default_block_length(ragged_shards(1'000'000, 20'000'000, 10'000)), (2 << 20) / 89);
    // 16 chunks at least, unless they are far larger than a block.
    EXPECT_EQ(default_block_length(ragged_shards(1'000'000, 20'000'000, 200'000)), 160'000);
    EXPECT_EQ(default_block_length(ragged_shards(1'000'000, 20'000'000, 20'000'000)),
              (2 << 20) / 89);
}

TEST(ChunkAlignedPartTest, PartsCoverTheRowsAndShareNoChunk) {
    for (const std::int64_t chunk : {0, 1, 3, 7, 50}) {
        for (const RowRange rows : {RowRange{0, 40}, RowRange{5, 33}, RowRange{11, 12}}) {
            for (const int parts : {1, 2, 3, 4, 9}) {
                std::int64_t next = rows.begin;
                for (int part = 0; part < parts; ++part) {
                    const RowRange range = chunk_aligned_part(rows, chunk, part, parts);
                    EXPECT_EQ(range.begin, next);
                    EXPECT_GE(range.size(), 0);
                    if (chunk > 0 && range.begin != rows.begin && range.size() > 0) {
                        EXPECT_EQ(range.begin % chunk, 0);
                    }
                    next = range.end;
                }
                EXPECT_EQ(next, rows.end);
            }
        }
    }
}

}  // namespace
}  // namespace hetseq
