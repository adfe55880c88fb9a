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

// Hydra names its folders so.
TEST_F(ShardSpecTest, ANameThatExistsIsTakenAsItIs) {
    const std::string run = in_folder("lr=0.1,bs=2");
    std::filesystem::create_directory(run);
    for (const char* name : {"lr=0.1,bs=2/[v1].h5", "lr=0.1,bs=2/v.h5", "lr=0.1,bs=2/a\\,b.h5"})
        folder_.write(name, name);

    EXPECT_EQ(expand_shard_spec(run).size(), 3U);
    EXPECT_THAT(expand_shard_spec(run + "/[v1].h5"), ElementsAre(run + "/[v1].h5"));
    EXPECT_THAT(expand_shard_spec(run + "/a\\,b.h5"), ElementsAre(run + "/a\\,b.h5"));
    EXPECT_THAT(expand_shard_spec(run + "/v*," + in_folder("b.h5")),
                ElementsAre(in_folder("b.h5"), run + "/v.h5"));
    EXPECT_THAT(expand_shard_spec(in_folder("lr=0.1\\,bs=2/\\[v1\\].h5")),
                ElementsAre(run + "/[v1].h5"));
}

TEST_F(ShardSpecTest, AFolderBeforeAPatternIsNoPattern) {
    std::filesystem::create_directory(in_folder("[v1]"));
    folder_.write("[v1]/x.h5", "x");

    EXPECT_THAT(expand_shard_spec(in_folder("[v1]/*.h5")), ElementsAre(in_folder("[v1]/x.h5")));
}

TEST_F(ShardSpecTest, WhatIsNoNameIsExplained) {
    const auto brackets = thrown_by([&] { expand_shard_spec(in_folder("[v1]/x.h5")); });
    const auto comma = thrown_by([&] { expand_shard_spec(in_folder("lr=0.1,bs=2/x.h5")); });

    EXPECT_EQ(brackets.code, ExitCode::missing_input);
    EXPECT_THAT(brackets.text, HasSubstr("/[v1]/x.h5 ([v1] is a pattern: one of the characters"));
    EXPECT_EQ(comma.code, ExitCode::missing_input);
    EXPECT_THAT(
        comma.text,
        HasSubstr("no such file: " + in_folder("lr=0.1") + " (a comma stands between two names)"));
}

TEST_F(ShardSpecTest, AFolderOnWhichAPreparationWorksIsRefused) {
    folder_.write(unfinished_preparation, "");

    const auto error = thrown_by([&] { expand_shard_spec(in_folder("b.h5")); });

    EXPECT_EQ(error.code, ExitCode::bad_data);
    EXPECT_THAT(error.text, HasSubstr("are not complete (it holds prepare.unfinished"));
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
