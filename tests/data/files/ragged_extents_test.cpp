#include "hetseq/data/files/ragged_extents.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/files/shard_set.hpp"

#include "data/generated_ragged_corpus.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

using test::Storage;

const std::vector<std::int64_t> sizes{17, 0, 120, 1, 0, 62};
const std::vector<std::int64_t (*)(std::int64_t)> lengths{
    test::source_length, test::target_length, test::target_length, test::place_length};

// What one loop over the formulas tells.
RaggedExtents slow_extents(std::int64_t n, std::int64_t block_length, std::int64_t max_length) {
    RaggedExtents extents;
    extents.longest.assign(lengths.size(), 0);
    for (const auto& length : lengths) {
        extents.borders.emplace_back();
        for (std::int64_t begin = 0; begin < n; begin += block_length)
            extents.borders.back().push_back(test::sum_over(0, begin, length));
        extents.borders.back().push_back(test::sum_over(0, n, length));
    }
    extents.block_samples.assign(extents.borders[0].size() - 1, 0);
    extents.block_units = extents.block_samples;
    for (std::int64_t sample = 0; sample < n; ++sample) {
        const bool is_too_long =
            max_length > 0 && std::any_of(lengths.begin(), lengths.end(), [&](auto length) {
                return length(sample) > max_length;
            });
        if (is_too_long) {
            extents.first_too_long = extents.too_long++ == 0 ? sample : extents.first_too_long;
            continue;
        }
        for (std::size_t k = 0; k < lengths.size(); ++k)
            extents.longest[k] = std::max(extents.longest[k], lengths[k](sample));
        ++extents.block_samples[static_cast<std::size_t>(sample / block_length)];
        extents.block_units[static_cast<std::size_t>(sample / block_length)] +=
            test::target_length(sample);
    }
    return extents;
}

void expect_equal(const RaggedExtents& found, const RaggedExtents& expected) {
    EXPECT_EQ(found.borders, expected.borders);
    EXPECT_EQ(found.longest, expected.longest);
    EXPECT_EQ(found.block_samples, expected.block_samples);
    EXPECT_EQ(found.block_units, expected.block_units);
    EXPECT_EQ(found.too_long, expected.too_long);
    EXPECT_EQ(found.first_too_long, expected.first_too_long);
}

TEST(RaggedExtentsTest, TellWhatALoopOverTheFormulasTells) {
    const HostComm world = test::world();
    for (const Storage storage : {Storage::contiguous, Storage::gzip}) {
        const test::SharedFolder folder{world};
        const std::int64_t n = test::write_ragged_corpus(world, folder, sizes, storage);
        const ShardSet shards = open_shard_set(world, folder.path(), test::ragged_schema());
        for (const std::int64_t block_length : {1, 7, 40, 137, 1000}) {
            for (const std::int64_t max_length : {0, 16, 499, 500})
                expect_equal(read_extents(world, shards, block_length, max_length),
                             slow_extents(n, block_length, max_length));
        }
    }
}

TEST(RaggedExtentsTest, WithoutAFieldOfUnitsSamplesCount) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    test::write_ragged_corpus(world, folder, {50});
    CorpusSchema schema = test::ragged_schema();
    schema.units_field.clear();
    const ShardSet shards = open_shard_set(world, folder.path(), schema);

    const RaggedExtents extents = read_extents(world, shards, 20, 22);

    EXPECT_EQ(extents.block_units, (std::vector<std::int64_t>{20, 19, 10}));
    EXPECT_EQ(extents.too_long, 1);
    EXPECT_EQ(extents.first_too_long, 37);
}

TEST(RaggedExtentsTest, FieldsThatSetNoLengthsAreNeverTooLong) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    const std::int64_t n = test::write_ragged_corpus(world, folder, sizes);
    CorpusSchema schema = test::ragged_schema();
    schema.fields[0].sets_lengths = false;  // the source, whose row 37 has 500 values
    const ShardSet shards = open_shard_set(world, folder.path(), schema);

    const RaggedExtents extents = read_extents(world, shards, 20, 22);

    EXPECT_EQ(extents.too_long, 0);
    EXPECT_EQ(extents.longest, (std::vector<std::int64_t>{0, 16, 16, 3}));
    EXPECT_EQ(extents.borders, slow_extents(n, 20, 0).borders);
}

TEST(LengthReaderTest, ReadsTheFieldsThatItIsAskedFor) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    const std::int64_t n = test::write_ragged_corpus(world, folder, sizes);
    const ShardSet shards = open_shard_set(world, folder.path(), test::ragged_schema());
    const std::vector<std::size_t>& ragged = shards.ragged_fields();
    LengthReader reader{shards, {ragged[0], ragged[3]}};

    const RowLengths found = reader.read(0, n);

    ASSERT_EQ(found.size(), 2U);
    for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(found[0][static_cast<std::size_t>(i)], test::source_length(i));
        EXPECT_EQ(found[1][static_cast<std::size_t>(i)], test::place_length(i));
    }
    reader.close();
}

TEST(LengthReaderTest, ReadsAnySamplesOnItsOwn) {
    const HostComm world = test::world();
    const test::SharedFolder folder{world};
    const std::int64_t n = test::write_ragged_corpus(world, folder, sizes);
    const ShardSet shards = open_shard_set(world, folder.path(), test::ragged_schema());
    LengthReader reader{shards};

    // Ranks read unlike samples.
    for (std::int64_t begin = world.rank(); begin < n; begin += 31) {
        const std::int64_t end = std::min(begin + 50, n);
        const RowLengths found = reader.read(begin, end);
        ASSERT_EQ(found.size(), lengths.size());
        for (std::size_t k = 0; k < lengths.size(); ++k) {
            ASSERT_EQ(std::ssize(found[k]), end - begin);
            for (std::int64_t i = 0; i < end - begin; ++i)
                EXPECT_EQ(found[k][static_cast<std::size_t>(i)], lengths[k](begin + i));
        }
    }
    reader.close();
}

}  // namespace
}  // namespace hetseq
