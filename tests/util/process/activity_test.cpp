#include "hetseq/util/process/activity.hpp"

#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

void sleep_ms(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(ActivityTest, TellsPhaseUpdateAndHowLong) {
    activity::enter(Phase::computing, 12);
    sleep_ms(20);

    const Activity seen = activity::now();

    EXPECT_EQ(seen.phase, Phase::computing);
    EXPECT_EQ(seen.update, 12);
    EXPECT_FALSE(seen.waits);
    EXPECT_GE(seen.seconds, 0.02);
}

TEST(ActivityTest, EveryChangeCountsAndStartsTheTimeAnew) {
    activity::enter(Phase::computing, 1);
    sleep_ms(20);
    const Activity before = activity::now();

    activity::enter(Phase::computing, 1);

    const Activity after = activity::now();
    EXPECT_EQ(after.changes, before.changes + 1);
    EXPECT_LT(after.seconds, before.seconds);
}

TEST(ActivityTest, ProgressStartsTheTimeAnewInTheJobsThreadAlone) {
    activity::enter(Phase::saving, 2);
    sleep_ms(20);
    const Activity before = activity::now();

    std::thread(activity::progress).join();
    EXPECT_EQ(activity::now().changes, before.changes);
    activity::progress();

    const Activity after = activity::now();
    EXPECT_EQ(after.changes, before.changes + 1);
    EXPECT_LT(after.seconds, before.seconds);
    EXPECT_EQ(after.phase, Phase::saving);
    EXPECT_EQ(after.update, 2);
}

TEST(ActivityTest, AHelpersProgressIsThatOfTheThreadThatWaitsForIt) {
    activity::enter(Phase::saving, 2);
    activity::Helper helper, idle;
    const auto work = [&](activity::Helper& of, bool progresses, int pieces) {
        return std::async(std::launch::async, [&of, progresses, pieces] {
            const activity::Helper::Thread helps(of);
            for (int i = 0; i < pieces; ++i) {
                sleep_ms(150);
                if (progresses)
                    activity::progress();
            }
        });
    };
    const std::int64_t before = activity::now().changes;
    auto slow = work(helper, true, 4);
    auto stuck = work(idle, false, 4);

    idle.wait(stuck);
    EXPECT_EQ(activity::now().changes, before);
    auto again = work(helper, true, 4);
    helper.wait(again);

    EXPECT_GT(activity::now().changes, before);
    slow.wait();
}

TEST(ActivityTest, TheNextPhaseKeepsTheUpdate) {
    activity::enter(Phase::computing, 7);

    activity::enter(Phase::saving);

    EXPECT_EQ(activity::now().phase, Phase::saving);
    EXPECT_EQ(activity::now().update, 7);
}

TEST(ActivityTest, AgreeingAndReducingAreWaits) {
    for (const auto& [phase, waits] : {std::pair{Phase::agreeing, true},
                                       {Phase::reducing, true},
                                       {Phase::loading, false},
                                       {Phase::saving, false}}) {
        activity::enter(phase, 1);
        EXPECT_EQ(activity::now().waits, waits) << to_string(phase);
    }
}

TEST(ActivityTest, AWaitBelongsToItsPhaseAndEnds) {
    activity::enter(Phase::validating, 3);
    {
        const activity::Waiting outer;
        const activity::Waiting inner;
        EXPECT_TRUE(activity::now().waits);
        EXPECT_EQ(activity::now().phase, Phase::validating);
    }
    EXPECT_FALSE(activity::now().waits);
    EXPECT_EQ(activity::now().update, 3);
}

TEST(ActivityTest, AnotherThreadsWaitIsNotTheJobs) {
    activity::enter(Phase::computing, 1);

    std::thread([] {
        const activity::Waiting waiting;
        EXPECT_FALSE(activity::now().waits);
    }).join();
}

TEST(ActivityTest, RemembersTheLongestStretchOfAKindThatEnded) {
    activity::enter(Phase::optimizing, 1);
    sleep_ms(30);
    {
        const activity::Waiting waiting;
        sleep_ms(60);
    }
    const double own = activity::now().longest;
    activity::enter(Phase::ending, 1);
    activity::enter(Phase::optimizing, 2);

    EXPECT_GE(own, 0.03);
    EXPECT_EQ(activity::now().longest, own);
    const activity::Waiting waiting;
    EXPECT_GE(activity::now().longest, 0.06);
}

TEST(ActivityTest, PhasesReadAsSentences) {
    EXPECT_EQ(phase_text(Phase::computing, 12), "computing update 12");
    EXPECT_EQ(phase_text(Phase::agreeing, 12), "agreeing on update 12");
    EXPECT_EQ(phase_text(Phase::saving, 12), "saving after update 12");
    EXPECT_EQ(phase_text(Phase::starting, 0), "starting");
}

}  // namespace
}  // namespace hetseq
