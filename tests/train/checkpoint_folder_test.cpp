#include "hetseq/train/checkpoint_folder.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/error.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

namespace fs = std::filesystem;

class CheckpointFolderTest : public testing::Test {
protected:
    void save(std::int64_t update) const {
        const fs::path path = checkpoints_.begin(update);
        write_atomically(path / "state.json", std::to_string(update));
        checkpoints_.commit(update, {});
    }
    std::vector<std::int64_t> updates() const {
        std::vector<std::int64_t> updates;
        for (const auto& entry : checkpoints_.list())
            updates.push_back(entry.update);
        return updates;
    }

    test::TemporaryFolder folder_;
    CheckpointFolder checkpoints_{folder_ / "checkpoints"};
};

using Updates = std::vector<std::int64_t>;

TEST_F(CheckpointFolderTest, ListsTheNewestFirst) {
    EXPECT_TRUE(updates().empty());
    for (const std::int64_t update : {7, 100'000'000, 12})
        save(update);
    EXPECT_EQ(updates(), (Updates{100'000'000, 12, 7}));
    EXPECT_EQ(checkpoints_.list()[2].path.filename(), "update-00000007");
}

TEST_F(CheckpointFolderTest, WhatWasNotCommittedIsNone) {
    save(3);
    write_atomically(checkpoints_.begin(5) / "state.json", "half");
    EXPECT_EQ(updates(), (Updates{3}));

    checkpoints_.clean(5);

    EXPECT_EQ(std::distance(fs::directory_iterator(checkpoints_.path()), {}), 1);
}

TEST_F(CheckpointFolderTest, KeepsTheNewestAndTheBest) {
    for (std::int64_t update = 1; update <= 6; ++update)
        save(update);
    checkpoints_.prune(2, 3);
    EXPECT_EQ(updates(), (Updates{6, 5, 3}));
    checkpoints_.prune(0, 0);
    EXPECT_EQ(updates(), (Updates{6, 5, 3}));
}

TEST_F(CheckpointFolderTest, OneOfTheSameUpdateIsReplaced) {
    save(4);
    const fs::path path = checkpoints_.begin(4);
    write_atomically(path / "other.json", "new");
    checkpoints_.commit(4, {});
    EXPECT_EQ(updates(), (Updates{4}));
    EXPECT_TRUE(fs::exists(checkpoints_.of_update(4) / "other.json"));
    EXPECT_FALSE(fs::exists(checkpoints_.of_update(4) / "state.json"));
}

TEST_F(CheckpointFolderTest, CleanRemovesWhatLiesBeyond) {
    for (const std::int64_t update : {2, 4, 6})
        save(update);
    checkpoints_.clean(4);
    EXPECT_EQ(updates(), (Updates{4, 2}));
    checkpoints_.clean(-1);
    EXPECT_TRUE(updates().empty());
}

TEST_F(CheckpointFolderTest, FoldersOfOtherNamesAreNotItsBusiness) {
    save(2);
    for (const char* name : {"update-2", "update-0000000x", "update-", "notes"})
        fs::create_directories(checkpoints_.path() / name);
    EXPECT_EQ(updates(), (Updates{2}));
}

TEST_F(CheckpointFolderTest, AFileInItsPlaceIsAnIoError) {
    folder_.write("checkpoints", "");
    EXPECT_THROW(checkpoints_.begin(1), IoError);
    EXPECT_THROW(checkpoints_.list(), IoError);
}

}  // namespace
}  // namespace hetseq
