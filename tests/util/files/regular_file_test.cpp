#include "hetseq/util/files/regular_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/file_text.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

TEST(RegularFileTest, WhatMayNeverEndIsRefused) {
    const test::TemporaryFolder folder;
    folder.write("file", "text");
    const auto pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);

    for (auto* check : {check_regular_file, check_text_file}) {
        EXPECT_NO_THROW(check(folder / "file"));
        EXPECT_NO_THROW(check(folder / "none"));
        EXPECT_THROW(check(pipe), BadData);
        EXPECT_THROW(check("/dev/zero"), BadData);
    }
    EXPECT_THROW(check_regular_file(folder.path()), BadData);
}

TEST(OutputFileTest, OnlyAFileIsReplacedAndThatOnlyWhereItMay) {
    const test::TemporaryFolder folder;
    folder.write("file", "text");
    const auto pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::filesystem::create_symlink("/dev/null", folder / "link");

    EXPECT_NO_THROW(check_output_file(folder / "none", false));
    EXPECT_NO_THROW(check_output_file(folder / "file", true));
    EXPECT_THROW(check_output_file(folder / "file", false), BadConfig);
    for (const bool may_replace : {false, true})
        for (const std::filesystem::path& path :
             {pipe, folder.path(), folder / "link", std::filesystem::path("/dev/full")})
            EXPECT_THROW(check_output_file(path, may_replace), BadConfig) << path;
}

// As bash passes <(command).
TEST(RegularFileTest, TextOfAShellsPipeIsRead) {
    int ends[2] = {};
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], "lr = 1\n", 7), 7);
    ::close(ends[1]);

    EXPECT_EQ(read_text_once("/dev/fd/" + std::to_string(ends[0])), "lr = 1\n");

    ::close(ends[0]);
}

TEST(RegularFileTest, TextMayComeFromTheShell) {
    EXPECT_NO_THROW(check_text_file("/dev/stdin"));
    EXPECT_NO_THROW(check_text_file("/dev/fd/0"));
    EXPECT_NO_THROW(check_text_file("/dev/null"));
}

}  // namespace
}  // namespace hetseq
