#include "hetseq/state/checkpoint_folder.hpp"

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/process/fault_point.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {

namespace test {
namespace {
std::string killed_at;  // the fault point at which this process dies; empty: none
std::pair<std::string, std::filesystem::path> removed_at;  // and where a folder vanishes
}  // namespace
}  // namespace test

// In the place of the program's own, which does nothing.
void fault_point(const char* name, std::int64_t) {
    if (name == test::killed_at)
        std::raise(SIGKILL);
    if (name == test::removed_at.first)
        std::filesystem::remove_all(test::removed_at.second);
}

namespace {

namespace fs = std::filesystem;

class CheckpointFolderTest : public testing::Test {
protected:
    void save(std::int64_t update) const { save(update, std::to_string(update)); }
    void save(std::int64_t update, const std::string& state) const {
        const fs::path path = checkpoints_.begin(update);
        const FileDigest digest = write_atomically(path / "state.json", state);
        checkpoints_.commit(update, {{{"state.json", digest}}});
    }
    // A process of its own saves, and is killed at the fault point.
    void save_and_die(std::int64_t update, const std::string& state, const char* point) const {
        const pid_t process = ::fork();
        if (process == 0) {
            test::killed_at = point;
            save(update, state);
            ::_exit(0);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(process, &status, 0), process);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << point;
    }
    std::string state_of(std::int64_t update) const {
        return folder_.read("checkpoints/" + checkpoints_.of_update(update).filename().string() +
                            "/state.json");
    }
    // By name.
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(checkpoints_.path()))
            names.push_back(entry.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
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

    checkpoints_.remove_leftovers();

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

TEST_F(CheckpointFolderTest, OfThoseThatTheClockAskedForTheTwoNewestAreKeptBesideTheOthers) {
    for (std::int64_t update = 1; update <= 9; ++update) {
        const bool for_the_clock = update % 3 != 0;
        checkpoints_.begin(update);
        if (for_the_clock)
            checkpoints_.mark_timed(update);
        save(update);
        EXPECT_EQ(is_timed(checkpoints_.of_update(update)), for_the_clock);
    }
    checkpoints_.prune(2, 1);
    EXPECT_EQ(updates(), (Updates{9, 8, 7, 6, 1}));
    checkpoints_.prune(0, 0);
    EXPECT_EQ(updates(), (Updates{9, 8, 7, 6}));
    checkpoints_.unmark_timed(8);
    EXPECT_FALSE(is_timed(checkpoints_.of_update(8)));
    checkpoints_.prune(2, 0);
    EXPECT_EQ(updates(), (Updates{9, 8, 7}));
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

using Names = std::vector<std::string>;

// At each step of a replacement: the newest checkpoint is listed for readers, who change nothing,
// and bears its name once the run is opened to write.
TEST_F(CheckpointFolderTest, KilledWhileOneIsReplacedOneIsThere) {
    const std::pair<const char*, const char*> survivors[]{
        {"checkpoint_aside", "old"}, {"checkpoint_rename", "old"}, {"checkpoint_renamed", "new"}};
    for (const auto& [point, survivor] : survivors) {
        save(3);
        save(4, "old");
        save_and_die(4, "new", point);

        const Names before = names();
        EXPECT_EQ(updates(), (Updates{4, 3})) << point;
        EXPECT_EQ(names(), before) << point;
        checkpoints_.put_back();

        EXPECT_EQ(updates(), (Updates{4, 3})) << point;
        EXPECT_EQ(state_of(4), survivor) << point;
        checkpoints_.remove_leftovers();
        EXPECT_EQ(names(), (Names{"update-00000003", "update-00000004"})) << point;
        checkpoints_.remove_all();
    }
}

TEST_F(CheckpointFolderTest, ReadersFindTheFormerOneUnderTheNameItHas) {
    save(4, "old");
    save_and_die(4, "new", "checkpoint_rename");

    const std::vector<CheckpointFolder::Entry> entries = checkpoints_.list();

    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].path.filename(), ".replaced-update-00000004");
}

TEST_F(CheckpointFolderTest, OnlyWhatIsWholeIsPutBack) {
    save(4, "old");
    save_and_die(4, "new", "checkpoint_rename");
    const fs::path former = checkpoints_.list()[0].path;
    fs::resize_file(former / "state.json", 1);

    checkpoints_.put_back();

    EXPECT_TRUE(fs::exists(former));
    EXPECT_FALSE(fs::exists(checkpoints_.of_update(4)));
}

TEST_F(CheckpointFolderTest, OneWithItsProperNameIsNotReplacedByTheFormer) {
    save(4, "old");
    save_and_die(4, "new", "checkpoint_renamed");

    checkpoints_.put_back();
    EXPECT_EQ(state_of(4), "new");
    save(4, "newest");

    EXPECT_EQ(state_of(4), "newest");
    EXPECT_EQ(names(), (Names{"update-00000004"}));
}

TEST_F(CheckpointFolderTest, TheFormerComesBackWhereTheNewOneCannotHaveItsName) {
    save(4, "old");
    const fs::path path = checkpoints_.begin(4);
    test::removed_at = {"checkpoint_rename", path};

    EXPECT_THROW(checkpoints_.commit(4, {}), IoError);

    EXPECT_EQ(state_of(4), "old");
    test::removed_at = {};
}

TEST_F(CheckpointFolderTest, WhatLiesBeyondIsSetAsideAndNeverRemoved) {
    for (int i = 0; i < 2; ++i) {
        for (const std::int64_t update : {2, 4, 6})
            save(update);
        EXPECT_EQ(checkpoints_.set_aside(4).size(), 1U);
        EXPECT_EQ(updates(), (Updates{4, 2}));
    }

    EXPECT_EQ(names(),
              (Names{"unused-update-00000006",
                     "unused-update-00000006-2",
                     "update-00000002",
                     "update-00000004"}));
    checkpoints_.remove_all();
    EXPECT_TRUE(names().empty());
}

// The former one is damaged and the only one of its update: it is not taken for a leftover.
TEST_F(CheckpointFolderTest, ADamagedFormerOneStays) {
    save(4, "old");
    save_and_die(4, "new", "checkpoint_rename");
    fs::resize_file(checkpoints_.list()[0].path / "state.json", 1);

    checkpoints_.put_back();
    checkpoints_.remove_leftovers();

    EXPECT_EQ(names(), (Names{".replaced-update-00000004"}));
}

// Two jobs may write checkpoints of one update until one of them sees that it lost the folder.
TEST_F(CheckpointFolderTest, StartsDoNotShareWhatIsNotComplete) {
    const CheckpointFolder one(checkpoints_.path(), "one"), other(checkpoints_.path(), "other");

    EXPECT_NE(one.begin(4), other.begin(4));
}

TEST_F(CheckpointFolderTest, AJobThatLostTheFolderChangesNothing) {
    save(3);
    save(4);
    const CheckpointFolder lost(
        checkpoints_.path(), "lost", [] { throw BadConfig("another job has the folder"); });
    lost.begin(4);
    lost.begin(5);
    const Names before = names();

    EXPECT_THROW(lost.commit(5, {}), BadConfig);
    EXPECT_THROW(lost.commit(4, {}), BadConfig);
    EXPECT_THROW(lost.prune(1, 0), BadConfig);
    EXPECT_THROW(lost.set_aside(3), BadConfig);
    EXPECT_THROW(lost.remove_leftovers(), BadConfig);

    EXPECT_EQ(state_of(4), "4");
    EXPECT_EQ(names(), before);
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
