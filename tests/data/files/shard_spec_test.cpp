#include "hetseq/data/files/shard_spec.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "data/error_text.hpp"
#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::thrown_by;
using testing::ElementsAre;
using testing::HasSubstr;

class ShardSpecTest : public testing::Test {
protected:
    ShardSpecTest() {
        for (const char* name : {"b.h5", "a.hdf5", "c.txt", "train-1.h5"})
            folder_.write(name, name);
    }

    std::string in_folder(const std::string& name) const { return (folder_ / name).string(); }

    test::TemporaryFolder folder_;
};

TEST_F(ShardSpecTest, AFileIsItself) {
    EXPECT_THAT(expand_shard_spec(in_folder("c.txt")), ElementsAre(in_folder("c.txt")));
}

TEST_F(ShardSpecTest, AFolderIsItsHdf5FilesInNameOrder) {
    EXPECT_THAT(expand_shard_spec(folder_.path().string()),
                ElementsAre(in_folder("a.hdf5"), in_folder("b.h5"), in_folder("train-1.h5")));
}

TEST_F(ShardSpecTest, AGlobAndAListAreSortedTogether) {
    EXPECT_THAT(expand_shard_spec(in_folder("train*") + "," + in_folder("a.hdf5")),
                ElementsAre(in_folder("a.hdf5"), in_folder("train-1.h5")));
}

TEST_F(ShardSpecTest, NothingFoundIsMissingInput) {
    std::filesystem::create_directory(in_folder("empty"));

    const auto glob = thrown_by([&] { expand_shard_spec(in_folder("x*.h5")); });
    const auto folder = thrown_by([&] { expand_shard_spec(in_folder("empty")); });

    EXPECT_EQ(glob.code, ExitCode::missing_input);
    EXPECT_THAT(glob.text, HasSubstr("no file matches " + in_folder("x*.h5")));
    EXPECT_EQ(folder.code, ExitCode::missing_input);
    EXPECT_THAT(folder.text, HasSubstr("empty holds no shards"));
}

TEST_F(ShardSpecTest, AFileNamedTwiceIsRefused) {
    const auto error =
        thrown_by([&] { expand_shard_spec(in_folder("b.h5") + "," + in_folder("./b.h5")); });

    EXPECT_EQ(error.code, ExitCode::config);
    EXPECT_THAT(error.text, HasSubstr("b.h5 is named twice"));
}

TEST_F(ShardSpecTest, AChangedFileIsNamed) {
    const FileStamp stamp = stamp_readable_file(in_folder("b.h5"));
    EXPECT_NO_THROW(check_unchanged(in_folder("b.h5"), stamp));

    std::ofstream(in_folder("b.h5"), std::ios::app) << "more";
    const auto error = thrown_by([&] { check_unchanged(in_folder("b.h5"), stamp); });

    EXPECT_EQ(error.code, ExitCode::bad_data);
    EXPECT_THAT(error.text, HasSubstr("b.h5 changed during the run (4 bytes at start, 8 now)"));
}

}  // namespace
}  // namespace hetseq
