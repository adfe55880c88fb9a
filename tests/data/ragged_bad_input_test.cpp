// Every way in which ragged fields can be wrong. All ranks throw the same.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/block_reader.hpp"
#include "hetseq/data/check_corpus.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/loading/batch_reader.hpp"

#include "data/generated_ragged_corpus.hpp"
#include "data/shared_folder_test.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::FilledDataset;
using test::ragged_corpus_datasets;
using test::ragged_schema;
using test::Storage;
using test::Thrown;
using test::thrown_by;
using testing::HasSubstr;

class RaggedBadInputTest : public test::SharedFolderTest {
protected:
    // Two good shards, an empty one, then one that `change` has made bad.
    template <class Change>
    void write_with(Change&& change) {
        on_first_rank([&] {
            write("a.h5", ragged_corpus_datasets(0, 30, Storage::gzip));
            write("b.h5", ragged_corpus_datasets(30, 20, Storage::gzip));
            write("c.h5", ragged_corpus_datasets(50, 0, Storage::gzip));
            auto datasets = ragged_corpus_datasets(50, 40, Storage::gzip);
            change(datasets);
            write("d.h5", datasets);
        });
    }

    void write(const std::string& name, const std::vector<FilledDataset>& datasets) {
        test::write_datasets(folder_ / name, datasets);
    }

    // What is found before any block is read; `check` says the same.
    Thrown opening(const CorpusSchema& schema = ragged_schema()) {
        DataContext context{world_, true};
        const Thrown thrown = thrown_by([&] { Corpus(context, folder_.path(), schema, {}); });
        expect_same_on_all_ranks(thrown);
        EXPECT_EQ(checking(schema).text, thrown.text);
        return thrown;
    }

    Thrown checking(const CorpusSchema& schema = ragged_schema()) {
        const Thrown thrown = thrown_by([&] { check_corpus(world_, folder_.path(), schema); });
        expect_same_on_all_ranks(thrown);
        return thrown;
    }

    // What is found in the blocks, of 7 samples, that the ranks read together in order.
    Thrown reading(const ShardSet& shards, const RaggedExtents& extents, IoMode io) {
        const BlockLayout layout = make_block_layout(shards, 7, &extents);
        std::vector<std::byte> slot(layout.slot_bytes);
        BlockReader reader{shards,
                           layout,
                           std::make_shared<HostComm>(world_.split_by_host()),
                           io,
                           ReadShare::part};
        std::int64_t block = 0;
        const Thrown thrown = thrown_by([&] {
            for (; block * 7 < shards.samples(); ++block)
                reader.read(block, slot);
        });
        reader.close();
        for (const std::int64_t other : world_.all_gather(block))
            EXPECT_EQ(other, block) << "ranks stop at different blocks";
        expect_same_on_all_ranks(thrown);
        return thrown;
    }

    void expect_bad_block(const CorpusSchema& schema,
                          const std::string& problem,
                          const std::string& why) {
        const ShardSet shards = open_shard_set(world_, folder_.path(), schema);
        const RaggedExtents extents = read_extents(world_, shards, 7, 0);
        for (const IoMode io : {IoMode::collective, IoMode::independent, IoMode::serial})
            expect_bad_data(reading(shards, extents, io), problem, why);
        expect_bad_data(checking(schema), problem, why);
    }

    void expect_bad_data(const Thrown& thrown, const std::string& problem, const std::string& why) {
        EXPECT_EQ(thrown.code, ExitCode::bad_data);
        EXPECT_THAT(thrown.text, HasSubstr(folder_ / problem));
        EXPECT_THAT(thrown.text, HasSubstr("(" + why));
    }
};

FilledDataset& dataset_of(std::vector<FilledDataset>& all, const std::string& name) {
    return *std::find_if(
        all.begin(), all.end(), [&](const FilledDataset& d) { return d.dataset.name == name; });
}

// Replaces values [first, last] of a dataset.
void set_values(FilledDataset& filled, std::int64_t first, std::int64_t last, std::int64_t value) {
    filled.value = [good = filled.value, first, last, value](auto i, auto column) {
        return i >= first && i <= last ? value : good(i, column);
    };
}

// Where a row of the last shard begins.
std::int64_t begin_of(std::int64_t (*length)(std::int64_t), std::int64_t row) {
    return test::sum_over(50, 50 + row, length);
}

TEST_F(RaggedBadInputTest, OffsetsThatFall) {
    write_with([](auto& all) { set_values(dataset_of(all, "source_offsets"), 18, 18, 3); });

    expect_bad_data(opening(),
                    "d.h5: dataset 'source_offsets' falls behind row 17",
                    "found 3 after " + std::to_string(begin_of(test::source_length, 17)) +
                        ", expected where each row begins, one after the other)");
}

TEST_F(RaggedBadInputTest, OffsetsBelowZero) {
    write_with([](auto& all) { set_values(dataset_of(all, "source_offsets"), 1, 1, -7); });

    expect_bad_data(
        opening(), "d.h5: dataset 'source_offsets' falls behind row 0", "found -7 after 0");
}

TEST_F(RaggedBadInputTest, OffsetsThatRunPastTheEnd) {
    for (const std::int64_t offset : {std::int64_t{100000}, INT64_MAX}) {
        write_with(
            [=](auto& all) { set_values(dataset_of(all, "target_offsets"), 18, 30, offset); });

        expect_bad_data(opening(),
                        "d.h5: dataset 'target_offsets' runs past the end at row 17",
                        "found " + std::to_string(offset) + ", and 'target' holds " +
                            std::to_string(begin_of(test::target_length, 40)) + " values)");
    }
}

TEST_F(RaggedBadInputTest, OffsetsThatDoNotBeginAtZero) {
    write_with([](auto& all) { set_values(dataset_of(all, "marks_offsets"), 0, 0, 1); });

    expect_bad_data(opening(), "d.h5: dataset 'marks_offsets' does not begin at 0", "found 1)");
}

TEST_F(RaggedBadInputTest, OffsetsThatEndBeforeTheValues) {
    write_with([](auto& all) {
        ++dataset_of(all, "places").dataset.shape[0];
        dataset_of(all, "places").value = [](auto, auto) { return 0; };
    });
    const std::int64_t values = begin_of(test::place_length, 40);

    expect_bad_data(opening(),
                    "d.h5: dataset 'places_offsets' does not end at the number of values",
                    "found " + std::to_string(values) + ", expected " + std::to_string(values + 1) +
                        " as in 'places')");
}

TEST_F(RaggedBadInputTest, OffsetsOfAnEmptyShard) {
    write_with([](auto&) {});
    on_first_rank([&] {
        auto datasets = ragged_corpus_datasets(50, 0, Storage::contiguous);
        set_values(dataset_of(datasets, "target_offsets"), 0, 0, 4);
        write("c.h5", datasets);
    });

    expect_bad_data(opening(), "c.h5: dataset 'target_offsets' does not begin at 0", "found 4)");
}

TEST_F(RaggedBadInputTest, TooFewOffsets) {
    write_with([](auto& all) { dataset_of(all, "target_offsets").dataset.shape[0] = 40; });
    expect_bad_data(opening(),
                    "d.h5: dataset 'target' has another length than the rest of the file",
                    "found 39 rows, expected 40 as in 'source')");

    write_with([](auto& all) {
        dataset_of(all, "target_offsets").dataset.shape[0] = 0;
        dataset_of(all, "target_offsets").dataset.chunk.clear();
    });
    expect_bad_data(opening(),
                    "d.h5: dataset 'target_offsets' is empty",
                    "offsets are one more than samples, so that no sample has one)");
}

TEST_F(RaggedBadInputTest, NoOffsets) {
    write_with([](auto& all) { all.erase(all.begin() + 3); });

    expect_bad_data(opening(),
                    "d.h5: dataset 'target_offsets' is missing",
                    "pairs needs source, source_offsets, labels, target, target_offsets, marks");
}

TEST_F(RaggedBadInputTest, OffsetsOfTheWrongType) {
    write_with([](auto& all) { dataset_of(all, "target_offsets").dataset.type = H5T_STD_I32LE; });
    expect_bad_data(opening(),
                    "d.h5: dataset 'target_offsets' is of the wrong type",
                    "found integer of 4 bytes, expected integers of 8 bytes)");

    write_with([](auto& all) { dataset_of(all, "target_offsets").dataset.type = H5T_IEEE_F64LE; });
    expect_bad_data(opening(),
                    "d.h5: dataset 'target_offsets' is of the wrong type",
                    "found floating point of 8 bytes, expected integers of 8 bytes)");
}

TEST_F(RaggedBadInputTest, WrongNumberOfDimensions) {
    for (const std::string name : {"target", "target_offsets"}) {
        write_with([&](auto& all) {
            dataset_of(all, name).dataset.shape.push_back(1);
            dataset_of(all, name).dataset.chunk.clear();
        });

        expect_bad_data(opening(),
                        "d.h5: dataset '" + name + "' has the wrong number of dimensions",
                        "found 2, expected 1");
    }
}

TEST_F(RaggedBadInputTest, RowsThatDisagreeBetweenFields) {
    // One value of row 17 belongs to row 18.
    write_with([](auto& all) {
        set_values(dataset_of(all, "marks_offsets"), 18, 18, begin_of(test::target_length, 18) - 1);
    });
    const std::int64_t length = test::target_length(50 + 17);

    expect_bad_data(opening(),
                    "d.h5: dataset 'marks', row 17 has another length than in 'target'",
                    "found " + std::to_string(length - 1) + " values, expected " +
                        std::to_string(length) + ")");
}

TEST_F(RaggedBadInputTest, RowsThatEndInsideOfAPosition) {
    write_with([](auto&) {});
    CorpusSchema schema = ragged_schema();
    schema.fields[2].position_values = 2;

    expect_bad_data(checking(schema),
                    "a.h5: dataset 'target', row 0 does not fit the shape of its rows",
                    "found 3 values, expected a multiple of 2)");
}

TEST_F(RaggedBadInputTest, RowsThatAreShorterThanTheModelTakes) {
    write_with([](auto&) {});
    CorpusSchema schema = ragged_schema();
    schema.fields[2].min_row_length = 4;

    expect_bad_data(checking(schema),
                    "a.h5: dataset 'target', row 0 is too short",
                    "found 3 values, expected at least 4)");
}

TEST_F(RaggedBadInputTest, TheFirstBadRowCountsWhateverItsField) {
    write_with([](auto& all) {
        set_values(dataset_of(all, "source_offsets"), 30, 30, -1);
        set_values(dataset_of(all, "places_offsets"), 20, 20, -1);
    });

    expect_bad_data(opening(), "d.h5: dataset 'places_offsets' falls behind row 19", "found -1");
}

// The model would fail in the middle of the run, and again after each resume.
TEST_F(RaggedBadInputTest, RowsThatAreTooLongForTheModelAreFoundAtStart) {
    write_with([](auto&) {});
    CorpusSchema schema = ragged_schema();
    schema.fields[0].max_row_length = 400;
    DataContext context{world_, true};
    const std::string problem =
        "1 of 90 samples are longer than 400, the model's limit (the first is row 7 of " +
        (folder_ / "b.h5") + ")";

    for (const std::int64_t max_length : {0, 10'000}) {
        const CorpusOptions options{.max_length = max_length};
        const Thrown training =
            thrown_by([&] { Corpus(context, folder_.path(), schema, options); });
        expect_same_on_all_ranks(training);
        EXPECT_EQ(training.code, ExitCode::bad_data);
        EXPECT_THAT(training.text, HasSubstr(problem));
        EXPECT_THAT(training.text, HasSubstr("or leave them out: --skip-too-long"));
    }
    EXPECT_THAT(checking(schema).text, HasSubstr(problem));
    EXPECT_EQ(thrown_by([&] { hetseq::BatchReader(world_, folder_.path(), schema, 4); }).text,
              checking(schema).text);
}

TEST_F(RaggedBadInputTest, RowsThatAreTooLongForTheModelCanBeLeftOut) {
    write_with([](auto&) {});
    CorpusSchema schema = ragged_schema();
    schema.fields[0].max_row_length = 400;
    DataContext context{world_, true};

    Corpus corpus{context, folder_.path(), schema, {.max_length = 10'000, .skip_too_long = true}};

    EXPECT_GE(corpus.extents().too_long, 1);
    EXPECT_EQ(corpus.extents().max_length, 400);
    EXPECT_LE(corpus.extents().longest[0], 400);
}

TEST_F(RaggedBadInputTest, ValueOutsideItsRange) {
    const std::int64_t place = begin_of(test::source_length, 17);
    ASSERT_GT(test::source_length(67), 1);
    write_with([=](auto& all) { set_values(dataset_of(all, "source"), place, place, 1000); });

    expect_bad_block(ragged_schema(),
                     "d.h5: dataset 'source', row 17: value 1000",
                     "expected 0 to 999, ids of the vocabulary)");
}

TEST_F(RaggedBadInputTest, ValueThatDoesNotFitItsTypeInMemory) {
    const std::int64_t place = begin_of(test::target_length, 40) - 1;
    write_with([=](auto& all) {
        set_values(dataset_of(all, "target"), place, place, (std::int64_t{1} << 32) + 1);
    });

    expect_bad_block(
        ragged_schema(), "d.h5: dataset 'target', row 39: value 4294967297", "expected 0 to 899)");
}

TEST_F(RaggedBadInputTest, PlaceBehindTheRow) {
    // The first sample of the last shard that has a place.
    std::int64_t row = 0;
    while (test::place_length(50 + row) == 0)
        ++row;
    const std::int64_t place = begin_of(test::place_length, row);
    const std::int64_t length = test::source_length(50 + row);
    write_with([=](auto& all) { set_values(dataset_of(all, "places"), place, place, length); });

    expect_bad_block(
        ragged_schema(),
        "d.h5: dataset 'places', row " + std::to_string(row) + ": value " + std::to_string(length),
        "expected 0 to " + std::to_string(length - 1) + ", places in the source)");
}

TEST_F(RaggedBadInputTest, FixedValueBehindTheRow) {
    write_with([](auto&) {});
    CorpusSchema schema = ragged_schema();
    schema.fields[1].below_row_length_of = "source";
    // Row 0 of the first shard, whose source is empty.
    expect_bad_block(schema, "a.h5: dataset 'labels', row 0: value 0", "expected 0 to -1)");
}

TEST_F(RaggedBadInputTest, Truncated) {
    write_with([](auto&) {});
    on_first_rank([&] {
        std::filesystem::resize_file(folder_ / "d.h5",
                                     std::filesystem::file_size(folder_ / "d.h5") / 2);
    });

    expect_bad_data(opening(), "d.h5 is truncated", "truncated file: eof = ");
}

TEST_F(RaggedBadInputTest, DamagedChunkOfOffsets) {
    write_with([](auto&) {});
    on_first_rank([&] {
        haddr_t address = 0;
        hsize_t bytes = 0;
        {
            const Hdf5File file{H5Fopen((folder_ / "d.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)};
            const Hdf5Dataset offsets{H5Dopen2(file.get(), "target_offsets", H5P_DEFAULT)};
            const Hdf5Space space{HETSEQ_HDF5_TRY(H5Dget_space(offsets.get()))};
            unsigned mask = 0;
            HETSEQ_HDF5_TRY(
                H5Dget_chunk_info(offsets.get(), space.get(), 1, nullptr, &mask, &address, &bytes));
        }
        std::fstream file(folder_ / "d.h5", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(address));
        file << std::string(bytes, '\xff');
    });

    const Thrown thrown = opening();

    EXPECT_EQ(thrown.code, ExitCode::io);
    EXPECT_THAT(thrown.text, HasSubstr(folder_ / "d.h5: reading rows "));
    EXPECT_THAT(thrown.text, HasSubstr("of dataset 'target_offsets' failed (inflate() failed)"));
}

// Rows of other lengths in the place of those that the layout was made for: nothing is written
// beyond a block's slot, and no rank waits for another.
TEST_F(RaggedBadInputTest, RowsThatMovedSinceTheStart) {
    write_with([](auto&) {});
    const RaggedExtents before =
        read_extents(world_, open_shard_set(world_, folder_.path(), ragged_schema()), 7, 0);
    write_with([](auto& all) {
        // Where the rows begin, counted from the end: as many values, in the opposite order.
        for (const char* name : {"target_offsets", "marks_offsets"}) {
            FilledDataset& offsets = dataset_of(all, name);
            offsets.value = [good = offsets.value](auto i, auto) {
                return good(40, 0) - good(40 - i, 0);
            };
        }
    });
    const ShardSet shards = open_shard_set(world_, folder_.path(), ragged_schema());

    for (const IoMode io : {IoMode::collective, IoMode::independent, IoMode::serial})
        expect_bad_data(reading(shards, before, io), "d.h5 changed during the run", "rows 6 to 13");
}

}  // namespace
}  // namespace hetseq
