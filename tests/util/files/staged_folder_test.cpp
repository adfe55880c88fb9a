#include "hetseq/util/files/staged_folder.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

using test::TemporaryFolder;

TEST(StagedFolderTest, AppearsWhenItIsComplete) {
    const TemporaryFolder folder;
    StagedFolder staged{folder / "deep/model/"};

    write_atomically(staged.path() / "a", "one");

    EXPECT_FALSE(std::filesystem::exists(folder / "deep/model"));
    staged.commit();
    EXPECT_EQ(folder.read("deep/model/a"), "one");
    EXPECT_FALSE(std::filesystem::exists(staged.path()));
}

TEST(StagedFolderTest, WithoutCommitNothingIsLeft) {
    const TemporaryFolder folder;
    {
        const StagedFolder staged{folder / "model"};
        write_atomically(staged.path() / "a", "one");
    }

    EXPECT_EQ(folder.size(), 0);
}

TEST(StagedFolderTest, OfAFormerFolderOnlyWhatIsNamedGoes) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "model");
    for (const char* name : {"model/a", "model/b", "model/c", "model/mine"})
        folder.write(name, "former");
    StagedFolder staged{folder / "model"};
    write_atomically(staged.path() / "a", "one");
    write_atomically(staged.path() / "b", "two");

    staged.commit({"b", "c", "d"});

    EXPECT_EQ(folder.read("model/a"), "one");
    EXPECT_EQ(folder.read("model/b"), "two");
    EXPECT_FALSE(std::filesystem::exists(folder / "model/c"));
    EXPECT_EQ(folder.read("model/mine"), "former");
    EXPECT_FALSE(std::filesystem::exists(staged.path()));
}

TEST(StagedFolderTest, WhatADeadProcessLeftIsRemoved) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / ".model.unfinished");
    folder.write(".model.unfinished/old", "half");

    StagedFolder staged{folder / "model"};
    staged.commit();

    EXPECT_FALSE(std::filesystem::exists(folder / "model/old"));
}

TEST(StagedFolderTest, AFolderThatCannotBeMadeIsAnError) {
    const TemporaryFolder folder;
    folder.write("file", "");

    EXPECT_THROW(StagedFolder(folder / "file/model"), IoError);
}

}  // namespace
}  // namespace hetseq
