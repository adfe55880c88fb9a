#include "hetseq/util/regular_file.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

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

TEST(RegularFileTest, TextMayComeFromTheShell) {
    EXPECT_NO_THROW(check_text_file("/dev/stdin"));
    EXPECT_NO_THROW(check_text_file("/dev/fd/0"));
    EXPECT_NO_THROW(check_text_file("/dev/null"));
}

}  // namespace
}  // namespace hetseq
