// Files made to harm: to read what is not theirs, or to compute for ever.
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "hetseq/data/check_corpus.hpp"
#include "hetseq/data/files/attachment.hpp"
#include "hetseq/data/files/first_shard.hpp"
#include "hetseq/data/hdf5/hdf5_dataset.hpp"
#include "hetseq/data/loading/batch_reader.hpp"

#include "data/error_text.hpp"
#include "data/generated_corpus.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::thrown_by;
using testing::AllOf;
using testing::HasSubstr;

class HostileShardTest : public testing::Test {
protected:
    HostileShardTest() { folder_.write("secret", "nobody else's"); }

    using Change = std::function<void(hid_t file)>;

    void write(const Change& change) {
        const Hdf5File file = test::create_file(path_);
        change(file.get());
    }

    // A dataset of one byte a row; `set` changes how it is created.
    static void make(hid_t file,
                     const char* name,
                     std::vector<hsize_t> extent,
                     const std::function<void(hid_t)>& set,
                     hid_t type = H5T_STD_U8LE) {
        const Hdf5Properties create{H5Pcreate(H5P_DATASET_CREATE)};
        set(create.get());
        const Hdf5Space space{
            H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr)};
        const Hdf5Dataset dataset{
            H5Dcreate2(file, name, type, space.get(), H5P_DEFAULT, create.get(), H5P_DEFAULT)};
        ASSERT_TRUE(dataset);
    }

    void make_external(hid_t file, const char* name, hid_t type = H5T_STD_U8LE) {
        const std::string secret = (folder_ / "secret").string();
        make(
            file,
            name,
            {13},
            [&](hid_t create) { H5Pset_external(create, secret.c_str(), 0, 13); },
            type);
    }

    // A file with dataset "a", for links to it.
    void write_other() {
        test::write_datasets((folder_ / "other.h5").string(),
                             {{{"a", H5T_STD_U8LE, {13}, {}}, [](auto, auto) { return 7; }}});
    }

    static CorpusSchema schema(bool is_ragged = false) {
        return {.kind = "bytes",
                .fields = {{.name = "a", .type = ElementType::uint8, .is_ragged = is_ragged}}};
    }

    std::string message(const CorpusSchema& of = schema()) {
        const HostComm alone = HostComm::serial();
        return thrown_by([&] { check_corpus(alone, path_, of); }).text;
    }

    test::TemporaryFolder folder_;
    std::string path_ = (folder_ / "shard.h5").string();
};

TEST_F(HostileShardTest, ExternalStorageIsRefusedByName) {
    write([&](hid_t file) { make_external(file, "a"); });

    EXPECT_THAT(message(),
                AllOf(HasSubstr("shard.h5: dataset 'a' keeps its values in another file"),
                      HasSubstr("/secret)")));
    EXPECT_THAT(thrown_by([&] { read_attachment(path_, "a"); }).text, HasSubstr("another file"));
    EXPECT_THAT(thrown_by([&] { read_first_integers(path_, "a", 5); }).text,
                HasSubstr("another file"));
}

TEST_F(HostileShardTest, ExternalStorageOfOffsetsIsRefused) {
    write([&](hid_t file) {
        make(file, "a", {13}, [](hid_t) {});
        make(
            file,
            "a_offsets",
            {1},
            [&](hid_t create) { H5Pset_external(create, (folder_ / "secret").c_str(), 0, 8); },
            H5T_STD_I64LE);
    });

    EXPECT_THAT(message(schema(true)), HasSubstr("'a_offsets' keeps its values in another file"));
}

TEST_F(HostileShardTest, ExternalLinksAreRefusedOnEveryPath) {
    write_other();
    write([&](hid_t file) {
        H5Lcreate_external("other.h5", "/a", file, "a", H5P_DEFAULT, H5P_DEFAULT);
    });
    const std::string direct = message();
    const std::string attachment = thrown_by([&] { read_attachment(path_, "a"); }).text;
    write([&](hid_t file) {
        H5Lcreate_external("other.h5", "/", file, "there", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_soft("/there/a", file, "a", H5P_DEFAULT, H5P_DEFAULT);
    });
    const Hdf5File file = open_hdf5(path_);
    const std::string indirect = thrown_by([&] { open_hdf5_dataset(file.get(), path_, "a"); }).text;

    for (const std::string& text : {direct, attachment, indirect})
        EXPECT_THAT(text,
                    HasSubstr("shard.h5: dataset 'a' is a link to another file "
                              "(external link: other.h5)"));
}

TEST_F(HostileShardTest, ALinkWithinTheFileIsGood) {
    write([&](hid_t file) {
        make(file, "hidden", {13}, [](hid_t) {});
        H5Lcreate_soft("/hidden", file, "a", H5P_DEFAULT, H5P_DEFAULT);
    });
    const Hdf5File file = open_hdf5(path_);

    EXPECT_NO_THROW(open_hdf5_dataset(file.get(), path_, "a"));
}

// Chunks that were never written take no space.
TEST_F(HostileShardTest, RowsThatWereNeverWrittenAreLimited) {
    const auto chunked = [](hid_t create) {
        const hsize_t chunk = 4096;
        H5Pset_chunk(create, 1, &chunk);
    };
    write([&](hid_t file) { make(file, "a", {5000}, chunked); });
    EXPECT_EQ(message(), "");

    write([&](hid_t file) { make(file, "a", {hsize_t{1} << 31}, chunked); });
    EXPECT_THAT(message(),
                AllOf(HasSubstr("shard.h5 declares 2 GiB of data and is "),
                      HasSubstr("the limit is 1 GiB, or 200 times the file's length")));
}

TEST_F(HostileShardTest, RowsWithoutValuesAreLimited) {
    write([&](hid_t file) { make(file, "a", {hsize_t{1} << 40, 0}, [](hid_t) {}); });
    CorpusSchema rows = schema();
    rows.fields[0].rank = 2;

    EXPECT_THAT(message(rows), HasSubstr("declares 1024 GiB of data"));
}

TEST_F(HostileShardTest, AChunkThatMemoryDoesNotHoldIsRefused) {
    write([&](hid_t file) {
        make(
            file,
            "a",
            {hsize_t{1} << 28},
            [](hid_t create) {
                const hsize_t chunk = hsize_t{1} << 28;
                H5Pset_chunk(create, 1, &chunk);
            },
            H5T_STD_I64LE);
    });

    EXPECT_THAT(message(), HasSubstr("dataset 'a' has chunks of 2 GiB (the limit is 1 GiB"));
}

TEST_F(HostileShardTest, ThousandsOfDatasetsAreNotListed) {
    write([&](hid_t file) {
        for (int i = 0; i <= 10000; ++i)
            H5Lcreate_soft("/x", file, std::to_string(i).c_str(), H5P_DEFAULT, H5P_DEFAULT);
    });

    EXPECT_THAT(message(), HasSubstr("shard.h5 holds more than 10000 datasets"));
}

}  // namespace
}  // namespace hetseq
