#include "hetseq/data/corpus_identity.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "hetseq/data/corpus.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/data/files/shard_set.hpp"

#include "data/generated_ragged_corpus.hpp"
#include "data/shared_folder_test.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::bert_like_datasets;
using test::bert_like_schema;
using test::FilledDataset;
using test::Storage;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class CorpusIdentityTest : public test::SharedFolderTest {
protected:
    // Collective. Opened as training does, and identified by all ranks together.
    CorpusIdentity identify(const std::string& spec, const CorpusIdentity* before = nullptr) {
        DataContext context{world_, true};
        const Corpus corpus{context, spec, bert_like_schema(), {}};
        return corpus.identity(before);
    }

    // Collective. Two shards of 40 and 60 samples in `name`.
    std::string write(const std::string& name,
                      Storage storage = Storage::gzip,
                      std::int64_t first = 0) {
        on_first_rank([&] {
            std::filesystem::create_directories(folder_ / name);
            test::write_datasets(folder_ / (name + "/a.h5"),
                                 bert_like_datasets(first, 40, storage));
            test::write_datasets(folder_ / (name + "/b.h5"),
                                 bert_like_datasets(first + 40, 60, storage));
        });
        return folder_ / name;
    }
};

TEST_F(CorpusIdentityTest, IsTheSameInAnotherFolderAndOnOtherRanks) {
    const std::string here = write("here");
    const std::string there = write("there");

    const CorpusIdentity first = identify(here);
    const CorpusIdentity again = identify(there, &first);
    const ShardSet shards = open_shard_set(HostComm::serial(), there, bert_like_schema());
    const CorpusIdentity alone = identify_corpus(HostComm::serial(), shards, nullptr);

    EXPECT_EQ(first, again);
    EXPECT_EQ(first, alone);
    EXPECT_THAT(difference(again, first), IsEmpty());
    ASSERT_EQ(first.shards.size(), 2U);
    EXPECT_EQ(first.shards[0].name, "a.h5");
    EXPECT_EQ(first.shards[1].samples, 60);
    EXPECT_EQ(first.datasets[0], "input_ids (16)");
}

TEST_F(CorpusIdentityTest, OtherValuesInShardsOfTheSameSizeAreFound) {
    const std::string here = write("here", Storage::contiguous);
    const std::string there = write("there", Storage::contiguous);
    on_first_rank([&] {
        auto datasets = bert_like_datasets(40, 60, Storage::contiguous);
        datasets[0].value = [](auto row, auto column) { return (row + column) % 1000; };
        test::write_datasets(there + "/b.h5", datasets);
    });

    const CorpusIdentity first = identify(here);
    const CorpusIdentity other = identify(there, &first);

    EXPECT_EQ(other.shards[1].bytes, first.shards[1].bytes);
    EXPECT_THAT(difference(other, first),
                AllOf(HasSubstr("shard b.h5 holds other values"), HasSubstr("rows were compared")));
}

TEST_F(CorpusIdentityTest, EveryDatasetCounts) {
    const std::string here = write("here", Storage::contiguous);
    const CorpusIdentity first = identify(here);
    for (std::size_t i = 0; i < 4; ++i) {
        const std::string there = write("there", Storage::contiguous);
        on_first_rank([&] {
            auto datasets = bert_like_datasets(0, 40, Storage::contiguous);
            datasets[i].value = [good = datasets[i].value](auto row, auto column) {
                return 1 - std::min<std::int64_t>(good(row, column), 1);
            };
            test::write_datasets(there + "/a.h5", datasets);
        });

        EXPECT_THAT(difference(identify(there, &first), first),
                    HasSubstr("shard a.h5 holds other values"))
            << "dataset " << i;
    }
}

TEST_F(CorpusIdentityTest, OtherNamesSizesAndCountsAreFound) {
    const CorpusIdentity first = identify(write("here"));
    const std::string there = write("there");
    on_first_rank([&] { std::filesystem::rename(there + "/b.h5", there + "/c.h5"); });
    EXPECT_EQ(difference(identify(there, &first), first),
              "shard c.h5 here, b.h5 there in its place");

    on_first_rank([&] { std::filesystem::remove(there + "/c.h5"); });
    EXPECT_EQ(difference(identify(there, &first), first), "1 shards here, 2 there");

    on_first_rank(
        [&] { test::write_datasets(there + "/b.h5", bert_like_datasets(40, 59, Storage::gzip)); });
    EXPECT_EQ(difference(identify(there, &first), first),
              "shard b.h5 has 59 samples here, 60 there");
}

// Rows are compared where they lay when the first was identified, whatever the chunks are now.
TEST_F(CorpusIdentityTest, ACopyThatIsStoredOtherwiseIsTheSame) {
    const CorpusIdentity first = identify(write("here", Storage::gzip));
    const std::string there = write("there", Storage::contiguous);

    const CorpusIdentity copy = identify(there, &first);

    EXPECT_NE(copy.shards[0].bytes, first.shards[0].bytes);
    EXPECT_THAT(difference(copy, first), IsEmpty());
    EXPECT_EQ(resized_shards(copy, first), 2);
    EXPECT_EQ(resized_shards(first, first), 0);
}

CorpusIdentity identity_of(std::vector<CorpusIdentity::Shard> shards) {
    return {{"ids (16)"}, std::move(shards)};
}

// Nothing vouches for the one of them whose rows are not compared.
TEST(CorpusDifferenceTest, AResizedShardIsAnotherUnlessItsRowsOrAllSizesSayOtherwise) {
    const CorpusIdentity there = identity_of({{"a", 10, 5, {1}, "1111"}, {"b", 20, 5}});
    const CorpusIdentity first_resized = identity_of({{"a", 11, 5, {1}, "1111"}, {"b", 20, 5}});
    const CorpusIdentity second_resized = identity_of({{"a", 10, 5, {1}, "1111"}, {"b", 21, 5}});
    const CorpusIdentity all_resized = identity_of({{"a", 11, 5, {1}, "1111"}, {"b", 21, 5}});
    const CorpusIdentity other_rows = identity_of({{"a", 11, 5, {1}, "2222"}, {"b", 21, 5}});

    EXPECT_THAT(difference(first_resized, there), IsEmpty());
    EXPECT_EQ(difference(second_resized, there), "shard b has 21 bytes here, 20 there");
    EXPECT_THAT(difference(all_resized, there), IsEmpty());
    EXPECT_THAT(difference(other_rows, there), HasSubstr("shard a holds other values"));
}

// Shards of `samples` each, of one dataset in chunks of `chunk` rows.
ShardSet shards_of(std::size_t count, std::int64_t samples, std::int64_t chunk) {
    const CorpusSchema schema{"test", {{.name = "a", .rank = 2, .row_shape = {-1}}}};
    std::vector<Shard> shards;
    for (std::size_t i = 0; i < count; ++i)
        shards.push_back({"shard", {samples, {{{4, true}, {128}, chunk}}}, {}, 0});
    return ShardSet(std::move(shards), schema);
}

TEST(TellingRowsTest, AreFewAndOfDifferentChunks) {
    for (const std::size_t count : {1, 2, 3, 15, 16, 17, 100}) {
        for (const std::int64_t samples : {1, 3, 1000}) {
            for (const std::int64_t chunk : {0, 1, 7, 250, 5000}) {
                const auto rows = telling_rows(shards_of(count, samples, chunk));

                std::size_t looked_at = 0, all = 0;
                for (const auto& of_shard : rows) {
                    std::set<std::int64_t> chunks;
                    for (const std::int64_t row : of_shard) {
                        EXPECT_TRUE(row >= 0 && row < samples);
                        EXPECT_TRUE(chunks.insert(row / std::max<std::int64_t>(chunk, 1)).second);
                    }
                    looked_at += of_shard.empty() ? 0 : 1;
                    all += of_shard.size();
                }
                EXPECT_EQ(looked_at, std::min<std::size_t>(count, 16));
                EXPECT_LE(all, 64U);
                if (samples == 1000 && chunk < 7) {
                    EXPECT_GE(all, 48U);  // 64 divided over the shards
                }
            }
        }
    }
}

TEST(TellingRowsTest, LongRowsAreFewer) {
    const CorpusSchema schema{"test", {{.name = "a", .rank = 2, .row_shape = {-1}}}};
    const ShardHeader header{1000, {{{4, true}, {1 << 20}, 0}}};

    const auto rows = telling_rows(ShardSet({{"one.h5", header, {}, 0}}, schema));

    EXPECT_EQ(rows[0].size(), 1U);  // of 8 MiB as it is read
}

// Fewer reads than ranks, and one that fails on one rank alone.
TEST_F(CorpusIdentityTest, AnErrorIsTheSameOnAllRanks) {
    const std::string here = write("here");
    on_first_rank([&] {
        haddr_t address = 0;
        hsize_t bytes = 0;
        {
            const Hdf5File file{H5Fopen((here + "/b.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)};
            const Hdf5Dataset labels{H5Dopen2(file.get(), "next_sentence_labels", H5P_DEFAULT)};
            const hsize_t chunk = 0;
            unsigned mask = 0;
            HETSEQ_HDF5_TRY(
                H5Dget_chunk_info_by_coord(labels.get(), &chunk, &mask, &address, &bytes));
        }
        std::fstream file(here + "/b.h5", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(address));
        file << std::string(bytes, '\xff');
    });

    const auto thrown = thrown_by([&] { identify(here); });

    EXPECT_EQ(thrown.code, ExitCode::io);
    EXPECT_THAT(thrown.text, HasSubstr(here + "/b.h5: reading "));
    EXPECT_THAT(thrown.text, HasSubstr("of dataset 'next_sentence_labels' failed"));
    for (const std::string& other : world_.all_gather(thrown.text))
        EXPECT_EQ(other, thrown.text);
}

// Of ragged rows lengths count as values do.
TEST_F(CorpusIdentityTest, RaggedRowsAreToldByTheirLengthsAndValues) {
    const auto identify_ragged = [&](std::vector<FilledDataset> datasets) {
        on_first_rank([&] { test::write_datasets(folder_ / "a.h5", datasets); });
        const ShardSet shards = open_shard_set(world_, folder_ / "a.h5", test::ragged_schema());
        return identify_corpus(world_, shards, nullptr);
    };
    const auto datasets = [](Storage storage) {
        return test::ragged_corpus_datasets(0, 40, storage);
    };
    auto moved = datasets(Storage::contiguous);  // no value but where rows 3 and 4 part
    for (const std::size_t offsets : {3, 5})
        moved[offsets].value = [good = moved[offsets].value](auto i, auto) {
            return good(i, 0) + (i == 4 ? 1 : 0);
        };
    auto changed = datasets(Storage::contiguous);
    changed[0].value = [](auto, auto) { return 8; };

    const CorpusIdentity good = identify_ragged(datasets(Storage::contiguous));
    const CorpusIdentity copy = identify_ragged(datasets(Storage::gzip));

    EXPECT_EQ(good.datasets[0], "source (ragged)");
    EXPECT_EQ(good.shards[0].rows.size(), 40U);
    EXPECT_EQ(copy.shards[0].checksum, good.shards[0].checksum);
    for (const auto& other : {moved, changed})
        EXPECT_NE(identify_ragged(other).shards[0].checksum, good.shards[0].checksum);
}

}  // namespace
}  // namespace hetseq
