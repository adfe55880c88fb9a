// Every way in which a corpus can be wrong: what headers show, when it is opened; what contents
// show, before a block is used. All ranks throw the same.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "hetseq/data/check_corpus.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/loading/loader.hpp"

#include "data/epoch_reader.hpp"
#include "data/shared_folder_test.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::bert_like_datasets;
using test::bert_like_schema;
using test::FilledDataset;
using test::Storage;
using test::Thrown;
using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

class BadInputTest : public test::SharedFolderTest {
protected:
    // Two good shards, then one that `change` has made bad.
    template <class Change>
    void write_with(Change&& change, Storage storage = Storage::gzip) {
        on_first_rank([&] {
            test::write_datasets(folder_ / "a.h5", bert_like_datasets(0, 30, storage));
            test::write_datasets(folder_ / "b.h5", bert_like_datasets(30, 20, storage));
            auto datasets = bert_like_datasets(50, 40, storage);
            change(datasets);
            test::write_datasets(folder_ / "c.h5", datasets);
        });
    }

    Thrown opening(const CorpusSchema& schema = bert_like_schema()) {
        return opening_of(folder_.path(), schema);
    }

    Thrown opening_of(const std::string& spec, const CorpusSchema& schema = bert_like_schema()) {
        DataContext context{world_, true};
        const Thrown thrown = thrown_by([&] { Corpus(context, spec, schema, {}); });
        expect_same_on_all_ranks(thrown);
        EXPECT_EQ(thrown_by([&] { check_corpus(world_, spec, schema); }).text, thrown.text);
        return thrown;
    }

    // Reads an epoch; blocks of 7 samples, not mixed, so that the error names what is asked for.
    Thrown reading(IoMode io = IoMode::collective, bool threads = true) {
        DataContext context{world_, threads};
        Corpus corpus{context,
                      folder_.path(),
                      bert_like_schema(),
                      {.shuffle_blocks = 1, .block_length = 7, .cache_mb = 1, .io = io}};
        test::BatchReader reader{world_, corpus, test::BatchReader::options(Shuffle::no), 7};
        std::int64_t taken = 0;
        const Thrown thrown = thrown_by([&] {
            for (; taken < reader.batches_per_epoch(); ++taken)
                reader.step();
        });
        for (const std::int64_t other : world_.all_gather(taken))
            EXPECT_EQ(other, taken) << "ranks stop at different batches";
        expect_same_on_all_ranks(thrown);
        return thrown;
    }

    void expect_bad_data(const Thrown& thrown, const std::string& problem, const std::string& why) {
        EXPECT_EQ(thrown.code, ExitCode::bad_data);
        EXPECT_THAT(thrown.text, AllOf(HasSubstr(problem), HasSubstr("(" + why)));
    }
};

FilledDataset& dataset(std::vector<FilledDataset>& all, const std::string& name) {
    return *std::find_if(
        all.begin(), all.end(), [&](const FilledDataset& d) { return d.dataset.name == name; });
}

// Replaces the values of one row.
void set_row(FilledDataset& filled, std::int64_t bad_row, std::int64_t value) {
    filled.value = [good = filled.value, bad_row, value](auto row, auto column) {
        return row == bad_row ? value : good(row, column);
    };
}

TEST_F(BadInputTest, NoFile) {
    const Thrown file = opening_of(folder_ / "none.h5");
    const Thrown glob = opening_of(folder_ / "none*");

    EXPECT_EQ(file.code, ExitCode::missing_input);
    EXPECT_THAT(file.text, HasSubstr("no such file: " + (folder_ / "none.h5")));
    EXPECT_EQ(glob.code, ExitCode::missing_input);
    EXPECT_THAT(glob.text, HasSubstr("no file matches " + (folder_ / "none*")));
}

TEST_F(BadInputTest, NotHdf5) {
    on_first_rank(
        [&] { std::ofstream(folder_ / "text.h5") << "plain text, longer than a header"; });
    expect_bad_data(opening(), folder_ / "text.h5 is not an HDF5 file", "");

    on_first_rank([&] { std::ofstream(folder_ / "text.h5"); });
    expect_bad_data(opening(), folder_ / "text.h5 is not an HDF5 file", "");
}

TEST_F(BadInputTest, Truncated) {
    write_with([](auto&) {});
    on_first_rank([&] {
        std::filesystem::resize_file(folder_ / "c.h5",
                                     std::filesystem::file_size(folder_ / "c.h5") / 2);
    });

    expect_bad_data(opening(), folder_ / "c.h5 is truncated", "truncated file: eof = ");
}

TEST_F(BadInputTest, MissingDataset) {
    write_with([](auto& all) { all.erase(all.begin() + 2); });

    expect_bad_data(opening(),
                    folder_ / "c.h5: dataset 'masked_lm_positions' is missing",
                    "BERT pretraining needs input_ids, input_mask, masked_lm_positions, "
                    "next_sentence_labels; the file holds input_ids, input_mask, "
                    "next_sentence_labels)");
}

TEST_F(BadInputTest, SurplusDataset) {
    write_with([](auto& all) {
        all.push_back(all[3]);
        all.back().dataset.name = "extra";
    });

    expect_bad_data(
        opening(), folder_ / "c.h5: dataset 'extra' is surplus", "BERT pretraining needs");
}

TEST_F(BadInputTest, WrongType) {
    write_with([](auto& all) { dataset(all, "input_ids").dataset.type = H5T_IEEE_F32LE; });

    expect_bad_data(opening(),
                    folder_ / "c.h5: dataset 'input_ids' is of the wrong type",
                    "found floating point of 4 bytes, expected an integer type)");
}

// HDF5 knows integers of any length, and would clip those of more than 8 bytes without a word; a
// damaged length makes it ask for gigabytes.
TEST_F(BadInputTest, IntegersOfMoreThanEightBytes) {
    const Hdf5Type wide{H5Tcopy(H5T_STD_I64LE)};
    H5Tset_size(wide.get(), 16);
    write_with([&](auto& all) { dataset(all, "input_ids").dataset.type = wide.get(); });

    expect_bad_data(opening(),
                    folder_ / "c.h5: dataset 'input_ids' is of the wrong type",
                    "found integers of 16 bytes, expected at most 8)");
}

// An unwritten chunk takes no space, so a small file may promise any extents.
TEST_F(BadInputTest, ExtentsLargerThanAnyFile) {
    const std::pair<std::vector<hsize_t>, std::string> cases[] = {
        {{hsize_t{1} << 60, 16}, "found 1152921504606846976 ..."},
        {{40, hsize_t{1} << 62}, "found 40 x 4611686018427387904 ..."},
        {{0, hsize_t{1} << 62}, "found 0 x 4611686018427387904 ..."}};
    for (const auto& [shape, why] : cases) {
        write_with([](auto& all) { all.erase(all.begin()); });
        on_first_rank([&, &shape = shape] {
            const Hdf5File file{H5Fopen((folder_ / "c.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT)};
            const Hdf5Space space{H5Screate_simple(2, shape.data(), nullptr)};
            const Hdf5Properties create{H5Pcreate(H5P_DATASET_CREATE)};
            const hsize_t chunk[2] = {1, 16};
            H5Pset_chunk(create.get(), 2, chunk);
            const Hdf5Dataset written{H5Dcreate2(file.get(),
                                                 "input_ids",
                                                 H5T_STD_I32LE,
                                                 space.get(),
                                                 H5P_DEFAULT,
                                                 create.get(),
                                                 H5P_DEFAULT)};
            HETSEQ_ASSERT(static_cast<bool>(written));
        });

        expect_bad_data(opening(), folder_ / "c.h5: dataset 'input_ids' is too large", why);
    }
}

TEST_F(BadInputTest, WrongRank) {
    write_with([](auto& all) {
        auto& labels = dataset(all, "next_sentence_labels").dataset;
        labels.shape = {40, 1};
        labels.chunk = {};
    });

    expect_bad_data(
        opening(),
        folder_ / "c.h5: dataset 'next_sentence_labels' has the wrong number of dimensions",
        "found 2, expected 1, the samples' included)");
}

TEST_F(BadInputTest, AGroupInPlaceOfADataset) {
    write_with([](auto& all) { all.erase(all.begin()); });
    on_first_rank([&] {
        const Hdf5File file{H5Fopen((folder_ / "c.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT)};
        const Hdf5Group group{
            H5Gcreate2(file.get(), "input_ids", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)};
    });

    const Thrown thrown = opening();

    EXPECT_THAT(thrown.text, HasSubstr(folder_ / "c.h5: 'input_ids' is not a dataset"));
}

TEST_F(BadInputTest, DatasetsOfUnequalLength) {
    write_with([](auto& all) { dataset(all, "input_mask").dataset.shape[0] = 39; });

    expect_bad_data(
        opening(),
        folder_ / "c.h5: dataset 'input_mask' has another length than the rest of the file",
        "found 39 rows, expected 40 as in 'input_ids')");
}

TEST_F(BadInputTest, RowsUnlikeAnotherDatasets) {
    write_with([](auto& all) { dataset(all, "input_mask").dataset.shape[1] = 8; });

    expect_bad_data(opening(),
                    folder_ / "c.h5: dataset 'input_mask' has rows of the wrong shape",
                    "found 8, expected 16 as in 'input_ids')");
}

TEST_F(BadInputTest, RowsOfTheWrongShape) {
    write_with([](auto&) {});
    CorpusSchema schema = bert_like_schema();
    schema.fields[0].row_shape = {128};

    expect_bad_data(opening(schema),
                    folder_ / "a.h5: dataset 'input_ids' has rows of the wrong shape",
                    "found 16, expected 128)");
}

TEST_F(BadInputTest, RowsTooLong) {
    write_with([](auto&) {});
    CorpusSchema schema = bert_like_schema();
    schema.fields[0].max_row_length = 8;

    expect_bad_data(opening(schema),
                    folder_ / "a.h5: dataset 'input_ids' has rows that are too long",
                    "found 16, expected at most 8)");
}

TEST_F(BadInputTest, ShardsOfDifferentKinds) {
    write_with([](auto& all) {
        dataset(all, "input_ids").dataset.shape[1] = 8;
        dataset(all, "input_mask").dataset.shape[1] = 8;
    });
    expect_bad_data(opening(),
                    folder_ / "c.h5: dataset 'input_ids' has rows unlike the other shards",
                    "found 8, expected 16 as in " + (folder_ / "a.h5)"));

    write_with([](auto& all) {
        all = {{{"images", H5T_STD_U8LE, {5, 4, 4}, {}}, [](auto, auto) { return 1; }},
               {{"labels", H5T_STD_U8LE, {5}, {}}, [](auto, auto) { return 1; }}};
    });
    expect_bad_data(
        opening(), folder_ / "c.h5: dataset 'input_ids' is missing", "BERT pretraining");
}

TEST_F(BadInputTest, EmptyCorpus) {
    on_first_rank([&] {
        for (const char* name : {"a.h5", "b.h5"})
            test::write_datasets(folder_ / name, bert_like_datasets(0, 0, Storage::contiguous));
    });

    expect_bad_data(opening(), "the corpus is empty", "2 shard(s) from " + (folder_ / "a.h5"));
}

TEST_F(BadInputTest, VirtualDataset) {
    write_with([](auto& all) { all.erase(all.begin() + 3); });
    on_first_rank([&] {
        const Hdf5File file{H5Fopen((folder_ / "c.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT)};
        const hsize_t length = 40;
        const Hdf5Space space{H5Screate_simple(1, &length, nullptr)};
        const Hdf5Properties create{H5Pcreate(H5P_DATASET_CREATE)};
        H5Pset_virtual(create.get(), space.get(), "b.h5", "next_sentence_labels", space.get());
        const Hdf5Dataset written{H5Dcreate2(file.get(),
                                             "next_sentence_labels",
                                             H5T_STD_I8LE,
                                             space.get(),
                                             H5P_DEFAULT,
                                             create.get(),
                                             H5P_DEFAULT)};
        ASSERT_TRUE(written);
    });

    expect_bad_data(opening(),
                    folder_ / "c.h5: dataset 'next_sentence_labels' is virtual",
                    "virtual datasets cannot be read in parallel)");
}

// The last rank alone looks elsewhere, where the shard is missing or another.
TEST_F(BadInputTest, UnreadableOnOneRankOnly) {
    on_first_rank([&] {
        std::filesystem::create_directories(folder_ / "here");
        std::filesystem::create_directories(folder_ / "there");
        test::write_datasets(folder_ / "here/a.h5", bert_like_datasets(0, 30, Storage::gzip));
    });
    const auto before = std::filesystem::current_path();
    const bool last = world_.rank() == world_.size() - 1;
    std::filesystem::current_path(folder_ / (last ? "there" : "here"));

    const Thrown missing = opening_of("a.h5");
    agree_on(world_, [&] {
        if (last)
            test::write_datasets("a.h5", bert_like_datasets(0, 300, Storage::gzip));
    });
    const Thrown another = opening_of("a.h5");
    std::filesystem::current_path(before);

    EXPECT_EQ(missing.code, ExitCode::missing_input);
    EXPECT_THAT(missing.text, HasSubstr("no such file: a.h5"));
    if (world_.size() == 1) {
        EXPECT_EQ(another.code, ExitCode::finished);
        return;
    }
    EXPECT_THAT(missing.text, HasSubstr("[rank " + std::to_string(world_.size() - 1)));
    EXPECT_EQ(another.code, ExitCode::bad_data);
    EXPECT_THAT(another.text, HasSubstr("a.h5 is not the same file on all ranks"));
}

TEST_F(BadInputTest, TheFirstBadFileIsNamedHoweverManyRanksLook) {
    on_first_rank([&] {
        test::write_datasets(folder_ / "a.h5", bert_like_datasets(0, 30, Storage::gzip));
        for (const char* name : {"b.h5", "c.h5", "d.h5", "e.h5"})
            std::ofstream(folder_ / name) << "not HDF5, and longer than its signature";
    });

    EXPECT_THAT(opening().text, HasSubstr(folder_ / "b.h5 is not an HDF5 file"));
}

// Read as int64, they would come as its largest value, which a field without bounds may hold.
TEST_F(BadInputTest, UnsignedValuesThatInt64CannotHold) {
    on_first_rank([&] {
        const Hdf5File file = test::create_file(folder_ / "c.h5");
        const hsize_t length = 3;
        const std::uint64_t values[3] = {0, 9223372036854775807u, 9223372036854775808u};
        const Hdf5Space space{H5Screate_simple(1, &length, nullptr)};
        const Hdf5Dataset written{H5Dcreate2(file.get(),
                                             "values",
                                             H5T_STD_U64LE,
                                             space.get(),
                                             H5P_DEFAULT,
                                             H5P_DEFAULT,
                                             H5P_DEFAULT)};
        HETSEQ_HDF5_TRY(
            H5Dwrite(written.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    });
    const CorpusSchema schema{.kind = "numbers",
                              .fields = {{.name = "values", .type = ElementType::int64}}};

    const Thrown thrown = thrown_by([&] { check_corpus(world_, folder_.path(), schema); });

    expect_same_on_all_ranks(thrown);
    expect_bad_data(thrown,
                    folder_ / "c.h5: dataset 'values', row 2: value 9223372036854775808",
                    "expected 0 to 9223372036854775807");
}

TEST_F(BadInputTest, IdOutsideTheVocabulary) {
    write_with([](auto& all) { set_row(dataset(all, "input_ids"), 17, 1000); });
    for (const IoMode io : {IoMode::collective, IoMode::independent, IoMode::serial}) {
        for (const bool threads : {true, false})
            expect_bad_data(reading(io, threads),
                            folder_ / "c.h5: dataset 'input_ids', row 17: value 1000",
                            "expected 0 to 999, ids of the vocabulary (vocab_size 1000))");
    }
}

TEST_F(BadInputTest, LabelOutsideTheClasses) {
    write_with([](auto& all) { set_row(dataset(all, "next_sentence_labels"), 39, -1); });

    expect_bad_data(reading(),
                    folder_ / "c.h5: dataset 'next_sentence_labels', row 39: value -1",
                    "expected 0 to 1, 0 for the next sentence, 1 for a random one)");
}

TEST_F(BadInputTest, PositionBehindTheSequence) {
    write_with([](auto& all) { set_row(dataset(all, "masked_lm_positions"), 0, 16); });

    expect_bad_data(reading(),
                    folder_ / "c.h5: dataset 'masked_lm_positions', row 0: value 16",
                    "expected 0 to 15, positions in the sequence)");
}

// Stored wider than it is kept in memory, a value must not be clipped to one that is allowed.
TEST_F(BadInputTest, ValueThatDoesNotFitItsTypeInMemory) {
    write_with([](auto& all) {
        dataset(all, "input_ids").dataset.type = H5T_STD_I64BE;
        dataset(all, "input_mask").dataset.type = H5T_STD_I16LE;
        set_row(dataset(all, "input_mask"), 9, 257);
    });

    expect_bad_data(reading(),
                    folder_ / "c.h5: dataset 'input_mask', row 9: value 257",
                    "expected 0 to 1, 0 for padding, 1 for a token)");
}

TEST_F(BadInputTest, DamagedChunk) {
    write_with([](auto&) {});
    on_first_rank([&] {
        haddr_t address = 0;
        hsize_t bytes = 0;
        {
            const Hdf5File file{H5Fopen((folder_ / "c.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)};
            const Hdf5Dataset ids{H5Dopen2(file.get(), "input_ids", H5P_DEFAULT)};
            const hsize_t chunk[] = {12, 8};
            unsigned mask = 0;
            HETSEQ_HDF5_TRY(H5Dget_chunk_info_by_coord(ids.get(), chunk, &mask, &address, &bytes));
        }
        std::fstream file(folder_ / "c.h5", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(address));
        file << std::string(bytes, '\xff');
    });
    for (const IoMode io : {IoMode::collective, IoMode::independent, IoMode::serial}) {
        const Thrown thrown = reading(io);

        EXPECT_EQ(thrown.code, ExitCode::io);
        EXPECT_THAT(thrown.text, HasSubstr(folder_ / "c.h5: reading rows "));
        EXPECT_THAT(thrown.text, HasSubstr("of dataset 'input_ids' failed (inflate() failed)"));
    }
}

TEST_F(BadInputTest, FileChangedDuringTheRun) {
    write_with([](auto&) {});
    DataContext context{world_, true};
    Corpus corpus{context,
                  folder_.path(),
                  bert_like_schema(),
                  {.shuffle_blocks = 1, .block_length = 7, .cache_mb = 1}};
    test::BatchReader reader{world_, corpus, test::BatchReader::options(Shuffle::no), 7, 0};
    reader.step();
    reader.step();

    on_first_rank([&] { std::ofstream(folder_ / "c.h5", std::ios::app) << "more"; });
    const Thrown thrown = thrown_by([&] {
        for (int k = 0; k < 20; ++k)
            reader.step();
    });

    EXPECT_EQ(thrown.code, ExitCode::bad_data);
    EXPECT_THAT(thrown.text, HasSubstr(folder_ / "c.h5 changed during the run ("));
    expect_same_on_all_ranks(thrown);
}

TEST_F(BadInputTest, CacheSizesOfOneHostMustAgree) {
    write_with([](auto&) {});
    DataContext context{world_, true};
    const bool odd = world_.rank() == world_.size() - 1 && world_.size() > 1;

    const Thrown thrown = thrown_by(
        [&] { Corpus(context, folder_.path(), bert_like_schema(), {.cache_mb = odd ? 100 : 50}); });

    if (world_.size() == 1) {
        EXPECT_EQ(thrown.code, ExitCode::finished);
    } else {
        EXPECT_EQ(thrown.code, ExitCode::config);
        EXPECT_THAT(
            thrown.text,
            HasSubstr("--cache-mb differs among the ranks of a host (100 here, 50 on another)"));
    }
}

}  // namespace
}  // namespace hetseq
