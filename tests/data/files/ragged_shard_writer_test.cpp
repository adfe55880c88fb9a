#include "hetseq/data/files/ragged_shard_writer.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/check_corpus.hpp"
#include "hetseq/data/files/attachment.hpp"
#include "hetseq/data/files/first_shard.hpp"

#include "data/error_text.hpp"
#include "data/read_dataset.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::read_dataset;
using test::read_rows;
using testing::ElementsAre;

using Rows = std::vector<std::vector<std::int32_t>>;

// `length(i)` values in row i.
template <class Length>
Rows rows_of(std::int32_t rows, Length length) {
    Rows made;
    for (std::int32_t row = 0; row < rows; ++row) {
        auto& values = made.emplace_back();
        for (std::int32_t i = 0; i < length(row); ++i)
            values.push_back((row * 31 + i) % 50'000);
    }
    return made;
}

class RaggedShardWriterTest : public testing::Test {
protected:
    void write(const std::string& name, const Rows& rows, std::int64_t most_ids = 50'000) {
        RaggedShardWriter writer{folder_ / name, {{"a", most_ids}, {"b", 100'000}}};
        writer.attach("book", "some bytes");
        writer.attach_again("same", "book");
        for (const auto& row : rows) {
            writer.append(0, row);
            writer.append(1, {});
        }
        writer.finish();
        writer.commit();
    }

    test::TemporaryFolder folder_;
};

TEST_F(RaggedShardWriterTest, AFieldMayHaveANumberInEachRow) {
    RaggedShardWriter writer{
        folder_ / "a.h5", {{"a", 50'000}, {"number", 100, false}}, ShardFormat::large_attributes};
    writer.attach_text("about", std::string(100'000, 'y'));
    for (std::int32_t row = 0; row < 10'000; ++row) {
        const std::int32_t number = row % 100;
        writer.append(0, std::vector<std::int32_t>(static_cast<std::size_t>(row % 3), row));
        writer.append(1, {&number, 1});
    }
    writer.finish();
    writer.commit();

    const std::vector<std::int64_t> numbers = read_dataset(folder_ / "a.h5", "number");
    ASSERT_EQ(numbers.size(), 10'000U);
    EXPECT_EQ(numbers[9'999], 99);
    EXPECT_EQ(read_rows(folder_ / "a.h5", "a")[8], Rows(1, {8, 8})[0]);
    EXPECT_EQ(read_attached_text(folder_ / "a.h5", "about"), std::string(100'000, 'y'));
    EXPECT_FALSE(first_shard_holds(folder_ / "a.h5", "number_offsets"));
    EXPECT_TRUE(first_shard_holds(folder_ / "a.h5", "a_offsets"));
}

TEST_F(RaggedShardWriterTest, RowsComeBack) {
    const Rows rows = rows_of(20'000, [](auto row) { return row % 23; });  // several chunks

    write("x.h5", rows);

    EXPECT_EQ(read_rows(folder_ / "x.h5", "a"), rows);
    EXPECT_EQ(read_rows(folder_ / "x.h5", "b"), Rows(rows.size()));
}

TEST_F(RaggedShardWriterTest, AShardMayHaveNoRows) {
    write("x.h5", {});

    EXPECT_THAT(read_dataset(folder_ / "x.h5", "a_offsets"), ElementsAre(0));
    EXPECT_THAT(read_dataset(folder_ / "x.h5", "a"), ElementsAre());
}

TEST_F(RaggedShardWriterTest, AttachmentsHaveTheBytesOnce) {
    write("x.h5", rows_of(3, [](auto) { return 2; }));

    const std::string path = folder_ / "x.h5";
    EXPECT_EQ(read_attachment(path, "book"), "some bytes");
    EXPECT_EQ(read_attachment(path, "same"), "some bytes");
    const Hdf5File file = test::open_file(path);
    H5O_info_t info{};
    HETSEQ_HDF5_TRY(H5Oget_info_by_name(file.get(), "same", &info, H5P_DEFAULT));
    EXPECT_EQ(info.rc, 2U);  // names
}

TEST_F(RaggedShardWriterTest, IdsTake2BytesWhereTheyFit) {
    write("small.h5", rows_of(5, [](auto) { return 2; }), 65'536);
    write("large.h5", rows_of(5, [](auto) { return 2; }), 65'537);

    const auto bytes = [&](const std::string& name) {
        const Hdf5File file = test::open_file(folder_ / name);
        const Hdf5Dataset dataset{HETSEQ_HDF5_TRY(H5Dopen2(file.get(), "a", H5P_DEFAULT))};
        const Hdf5Type type{HETSEQ_HDF5_TRY(H5Dget_type(dataset.get()))};
        EXPECT_EQ(H5Tget_sign(type.get()), H5T_SGN_NONE);
        return H5Tget_size(type.get());
    };
    EXPECT_EQ(bytes("small.h5"), 2U);
    EXPECT_EQ(bytes("large.h5"), 4U);
}

TEST_F(RaggedShardWriterTest, TheSameRowsGiveTheSameBytes) {
    const Rows rows = rows_of(9'000, [](auto row) { return row % 40; });

    write("x.h5", rows);
    const std::string first = folder_.read("x.h5");
    write("x.h5", rows);

    EXPECT_EQ(folder_.read("x.h5"), first);
}

TEST_F(RaggedShardWriterTest, WithoutCommitNothingIsLeft) {
    folder_.write("x.h5", "former");
    {
        RaggedShardWriter writer{folder_ / "x.h5", {{"a", 10}}};
        writer.append(0, std::vector<std::int32_t>{1, 2});
    }
    {
        RaggedShardWriter writer{folder_ / "x.h5", {{"a", 10}}};
        writer.finish();
    }

    EXPECT_EQ(folder_.read("x.h5"), "former");
    EXPECT_EQ(folder_.size(), 1);
}

TEST_F(RaggedShardWriterTest, AFolderThatIsMissingIsNamed) {
    const auto thrown = test::thrown_by([&] {
        RaggedShardWriter{folder_ / "none/x.h5", {{"a", 10}}};
    });

    EXPECT_EQ(thrown.code, ExitCode::io);
    EXPECT_THAT(thrown.text, testing::HasSubstr("none/x.h5"));
}

TEST_F(RaggedShardWriterTest, ReadersTakeIt) {
    RaggedShardWriter writer{folder_ / "x.h5", {{"a", 50'000}}};
    const Rows rows = rows_of(10'000, [](auto row) { return row % 17; });
    for (const auto& row : rows)
        writer.append(0, row);
    writer.finish();
    writer.commit();

    const CorpusReport report = check_corpus(
        HostComm::serial(),
        folder_ / "x.h5",
        {.kind = "a test",
         .fields = {{.name = "a", .is_ragged = true, .minimum = 0, .maximum = 49'999}}});

    EXPECT_EQ(report.samples, 10'000);
    EXPECT_EQ(report.fields[0].longest, 16);
}

}  // namespace
}  // namespace hetseq
