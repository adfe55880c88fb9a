#include "hetseq/train/record/run_history.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "util/temporary_folder.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

constexpr double day_s = 86400;

// 100 s from 1000 on: 10 to start, 60 for updates 5 to 24, 20 for validation, 5 for checkpoints.
RunStart usual_start() {
    return {.began = 1000,
            .seen = 1100,
            .ranks = 2,
            .first_update = 5,
            .updates = 25,
            .starting_s = 10,
            .updating_s = 60,
            .validating_s = 20,
            .saving_s = 5};
}

RunStart start_at(double began, double seconds, std::int64_t first_update) {
    RunStart start;
    start.began = began;
    start.seen = began + seconds;
    start.first_update = start.updates = first_update;
    return start;
}

TEST(GoodputTest, TellsWhereTheTimeOfAllStartsWent) {
    RunStart last = start_at(1130, 70, 20);
    last.updates = 30;
    last.updating_s = 50;
    const std::vector<RunStart> starts{usual_start(), last};

    const Goodput sum = goodput(starts);

    EXPECT_DOUBLE_EQ(sum.lost_s, 15);  // 5 of 20 updates
    EXPECT_DOUBLE_EQ(sum.updating_s, 45 + 50);
    EXPECT_DOUBLE_EQ(sum.starting_s, 10);
    EXPECT_DOUBLE_EQ(sum.validating_s, 20);
    EXPECT_DOUBLE_EQ(sum.saving_s, 5);
    EXPECT_DOUBLE_EQ(sum.between_s, 30);
    EXPECT_DOUBLE_EQ(sum.other_s, 5 + 20);
    EXPECT_DOUBLE_EQ(sum.seconds(), 200);
    EXPECT_DOUBLE_EQ(sum.share(), 0.475);
    EXPECT_EQ(sum.starts, 2);
    EXPECT_EQ(sum.failures, 1);
}

TEST(GoodputTest, AStartThatGoesOnWhereTheOneBeforeEndedLosesNothing) {
    RunStart first = usual_start();
    first.ended = "stopped";
    const std::vector<RunStart> starts{first, start_at(1100, 10, 25), start_at(1110, 10, 25)};

    EXPECT_EQ(goodput(starts).lost_s, 0);
    EXPECT_EQ(goodput(starts).failures, 1);  // the second died, the last one goes on
    EXPECT_EQ(goodput({}).share(), 0);
}

// It was killed between two signs of life: 4 updates of 3 s more, 5 s of which fit before the next.
TEST(GoodputTest, ACheckpointThatIsYoungerThanTheLastSignOfLifeWasComputed) {
    const std::vector<RunStart> soon{usual_start(), start_at(1105, 10, 29)};
    const std::vector<RunStart> later{usual_start(), start_at(1130, 10, 29)};

    EXPECT_DOUBLE_EQ(goodput(soon).updating_s, 65);
    EXPECT_DOUBLE_EQ(goodput(soon).between_s, 0);
    EXPECT_DOUBLE_EQ(goodput(later).updating_s, 72);
    EXPECT_DOUBLE_EQ(goodput(later).between_s, 18);
    EXPECT_DOUBLE_EQ(goodput(later).seconds(), 140);
}

TEST(GoodputTest, FailuresAreThoseThatDidNotEndInOrder) {
    std::vector<RunStart> starts{start_at(0, 50, 0), start_at(60, 30, 0), start_at(100, 40, 0)};
    starts[1].ended = "stopped";

    EXPECT_EQ(mean_time_between_failures_s(starts), 120);
    starts[0].ended = "stopped";
    EXPECT_EQ(mean_time_between_failures_s(starts), 3600 + 120);
    EXPECT_EQ(mean_time_between_failures_s({}), 3600);
    starts[2].seen = 1e6;
    EXPECT_EQ(mean_time_between_failures_s(starts), day_s);
}

class RunHistoryTest : public testing::Test {
protected:
    RunHistoryTest() {
        clock_.since_1970 = [this] { return 5000 + now_ + set_; };
        clock_.monotonic = [this] { return now_; };
    }

    RunHistory begin(std::int64_t first_update) {
        return {file_, 2, 3, first_update, [this] { return may_write_; }, clock_};
    }

    const test::TemporaryFolder folder_;
    const std::filesystem::path file_ = folder_ / "starts.json";
    RunHistory::Clock clock_;
    double now_ = 100, set_ = 0;
    bool may_write_ = true;
};

TEST_F(RunHistoryTest, IsReadByTheNextStart) {
    RunHistory first = begin(0);
    now_ += 1;
    first.started();
    for (int update = 1; update <= 12; ++update) {
        now_ += 1;
        first.updated(update, 0.75);
    }
    first.saved(0.25);
    first.measured({.training_s = 0.5, .writing_s = 3});
    EXPECT_EQ(first.known_validation_s(), 0);
    first.validated(4);
    first.validated(2);
    now_ += 10;
    set_ = -1000;  // somebody set the clock
    first.updated(13, 0.75);
    RunHistory second = begin(7);

    ASSERT_EQ(second.starts().size(), 2U);
    const RunStart& read = second.starts().front();
    EXPECT_EQ(read.began, 5098);
    EXPECT_EQ(read.seen, 5123);
    EXPECT_EQ(read.ended, "");
    EXPECT_EQ(read.ranks, 3);
    EXPECT_EQ(read.updates, 13);
    EXPECT_EQ(read.starting_s, 3);
    EXPECT_EQ(read.updating_s, 13 * 0.75);
    EXPECT_EQ(read.saving_s, 0.25);
    ASSERT_TRUE(second.known_cost());
    EXPECT_EQ(second.known_cost()->writing_s, 3);
    EXPECT_EQ(second.known_validation_s(), 4);  // the longest, though a new start has none yet
    EXPECT_EQ(second.starts().back().first_update, 7);
}

TEST_F(RunHistoryTest, AnEndInOrderIsNoFailure) {
    begin(0).end("finished");
    EXPECT_EQ(failures(begin(3).starts()), 0);
    EXPECT_EQ(failures(begin(3).starts()), 1);
}

TEST_F(RunHistoryTest, DamagedOrForeignFilesBeginANewOne) {
    for (const char* text :
         {"", "{", "[]", "{\"starts\": [{}]}", "{\"starts\": [{\"began\": -1}]}"}) {
        folder_.write("starts.json", text);
        testing::internal::CaptureStderr();
        EXPECT_TRUE(read_run_history(file_).empty()) << text;
        EXPECT_THAT(testing::internal::GetCapturedStderr(),
                    testing::HasSubstr("starts.json cannot be read"));
        EXPECT_EQ(begin(0).starts().size(), 1U) << text;
    }
}

TEST_F(RunHistoryTest, KeepsSoManyStartsAndWritesNothingThatItMayNot) {
    for (int start = 0; start < 205; ++start)
        begin(start);
    EXPECT_EQ(read_run_history(file_).size(), 200U);
    EXPECT_EQ(read_run_history(file_).front().first_update, 5);
    may_write_ = false;
    begin(300);
    EXPECT_EQ(read_run_history(file_).back().first_update, 204);
}

TEST_F(RunHistoryTest, AFolderThatIsGoneIsNoFailureOfTheRun) {
    RunHistory history = begin(0);
    std::filesystem::remove_all(file_.parent_path());
    now_ += 20;
    history.updated(1, 1);
    history.end("finished");
    EXPECT_FALSE(std::filesystem::exists(file_.parent_path()));
}

}  // namespace
}  // namespace hetseq
