#include "hetseq/data/files/shard_set.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

ShardSet shards_of(const std::vector<std::int64_t>& sizes) {
    const CorpusSchema schema{"test", {{.name = "a", .type = ElementType::uint8}}};
    std::vector<Shard> shards;
    for (const std::int64_t size : sizes)
        shards.push_back({"shard", {size, {{{1, false}, {}, 0}}}, {}, 0});
    return ShardSet(std::move(shards), schema);
}

TEST(ShardSetTest, RowsCrossShardsAndSkipEmptyOnes) {
    const ShardSet shards = shards_of({0, 3, 0, 0, 4, 0});

    EXPECT_EQ(shards.samples(), 7);
    EXPECT_EQ(shards.rows(0, 7), (std::vector<ShardRows>{{1, 0, 3}, {4, 0, 4}}));
    EXPECT_EQ(shards.rows(2, 4), (std::vector<ShardRows>{{1, 2, 3}, {4, 0, 1}}));
    EXPECT_EQ(shards.rows(3, 4), (std::vector<ShardRows>{{4, 0, 1}}));
    EXPECT_TRUE(shards.rows(3, 3).empty());
}

TEST(ShardSetTest, ValuesOfRaggedFieldsLieEndToEndToo) {
    const CorpusSchema schema{"test",
                              {{.name = "a", .type = ElementType::uint8},
                               {.name = "r", .type = ElementType::uint8, .is_ragged = true}}};
    std::vector<Shard> all;
    for (const std::int64_t values : {20, 0, 7})
        all.push_back(
            {"shard", {3, {{{1, false}, {}, 0}, {{1, false}, {}, 0, values, {}}}}, {}, 0});

    const ShardSet shards(std::move(all), schema);

    EXPECT_EQ(shards.ragged_fields(), std::vector<std::size_t>{1});
    EXPECT_EQ(shards.values(1), 27);
    EXPECT_EQ(shards.shards()[1].value_offsets, std::vector<std::int64_t>{20});
    EXPECT_EQ(shards.shards()[2].value_offsets, std::vector<std::int64_t>{20});
}

}  // namespace
}  // namespace hetseq
