#include "hetseq/train/watch/stall_detector.hpp"

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double timeout = 10;  // [s]

Activity at(Phase phase, double seconds, double longest = 0) {
    Activity activity;
    activity.phase = phase;
    activity.waits = phase == Phase::agreeing || phase == Phase::reducing;
    activity.update = 12;
    activity.seconds = seconds;
    activity.longest = longest;
    return activity;
}

Activity waiting_at(Phase phase, double seconds) {
    Activity activity = at(phase, seconds);
    activity.waits = true;
    return activity;
}

// Three ranks, from time 0 on.
StallDetector three_ranks() {
    return {{"node01", "node02", "node03"}, timeout, 0};
}

TEST(StallDetectorTest, RanksAtWorkWithinTheTimeoutAreGood) {
    StallDetector detector = three_ranks();
    for (double now = 1; now < 1000; now += 5) {
        detector.heard(0, at(Phase::reducing, 3), now);
        detector.heard(1, at(Phase::computing, 3), now);
        detector.heard(2, at(Phase::computing, 4.9), now);
        EXPECT_FALSE(detector.judge(now + 5));
    }
}

TEST(StallDetectorTest, ARankLongInItsOwnWorkStalls) {
    StallDetector detector = three_ranks();
    detector.heard(0, at(Phase::reducing, 8), 8);
    detector.heard(1, at(Phase::computing, 8), 8);
    detector.heard(2, at(Phase::reducing, 7), 8);

    EXPECT_FALSE(detector.judge(9.9));
    const auto stall = detector.judge(10.1);

    ASSERT_TRUE(stall);
    EXPECT_FALSE(stall->is_lost);
    EXPECT_THAT(stall->ranks, ElementsAre(1));
    EXPECT_THAT(stall->text,
                StartsWith("rank 1 on node02 has been computing update 12 for 10 s ("));
    EXPECT_THAT(stall->text, HasSubstr("--stall-timeout (now 10)"));
}

TEST(StallDetectorTest, SaysTheRoleThatARankHasNow) {
    StallDetector detector = three_ranks();
    detector.heard(1, at(Phase::computing, 0.1), 1, "stage 0 of 2");
    detector.heard(1, at(Phase::computing, 11), 5, "stage 1 of 2");

    const auto stall = detector.judge(5);

    ASSERT_TRUE(stall);
    EXPECT_THAT(stall->text, StartsWith("rank 1 on node02 (stage 1 of 2) has been computing"));
}

// All is waiting that an idle rank does.
TEST(StallDetectorTest, AnIdleRankMayWaitForTheOthersForEver) {
    StallDetector detector = three_ranks();
    for (double now = 1; now < 1000; ++now) {
        detector.heard(0, waiting_at(Phase::validating, now), now);
        detector.heard(1, at(Phase::reducing, now), now);
        detector.heard(2, at(Phase::computing, 0.9), now);
        EXPECT_FALSE(detector.judge(now));
    }
}

TEST(StallDetectorTest, TheSlowestRanksLongestStretchIsAllowedToAll) {
    StallDetector detector = three_ranks();
    detector.heard(2, at(Phase::computing, 0.1, 100), 5);
    for (const int rank : {0, 2})
        detector.heard(rank, at(Phase::reducing, 1), 100);
    detector.heard(1, at(Phase::computing, 108), 100);

    EXPECT_FALSE(detector.judge(101.9));
    const auto stall = detector.judge(102.1);

    ASSERT_TRUE(stall);
    EXPECT_THAT(stall->ranks, ElementsAre(1));
    EXPECT_THAT(stall->text, HasSubstr("the longest that any rank ever needed for this was 100 s"));
}

TEST(StallDetectorTest, WhatOnePhaseNeedsIsNotAllowedToAnother) {
    StallDetector detector = three_ranks();
    detector.heard(1, at(Phase::validating, 0.1, 500), 5);
    detector.heard(1, at(Phase::computing, 11), 6);

    EXPECT_TRUE(detector.judge(6));
}

// Nor does a wait of 500 s make work of 500 s good.
TEST(StallDetectorTest, WaitsAndWorkOfAPhaseAreKeptApart) {
    StallDetector detector = three_ranks();
    Activity waited = waiting_at(Phase::saving, 0.1);
    waited.longest = 500;
    detector.heard(1, waited, 5);
    detector.heard(1, at(Phase::saving, 11), 6);

    EXPECT_TRUE(detector.judge(6));
}

TEST(StallDetectorTest, SeveralThatStallAreNamedTheLongestFirst) {
    StallDetector detector = three_ranks();
    detector.heard(0, at(Phase::loading, 20), 5);
    detector.heard(1, at(Phase::reducing, 20), 5);
    detector.heard(2, at(Phase::loading, 30), 5);

    const auto stall = detector.judge(5);

    ASSERT_TRUE(stall);
    EXPECT_THAT(stall->ranks, ElementsAre(2, 0));
    EXPECT_THAT(stall->text,
                StartsWith("ranks 2 on node03, 0 on node01 have been loading update 12 for 30 s"));
}

TEST(StallDetectorTest, ARankNotHeardFromIsLost) {
    StallDetector detector = three_ranks();
    detector.heard(2, at(Phase::computing, 1), 20);
    for (double now = 20; now <= 32; ++now) {
        detector.heard(0, at(Phase::reducing, 1), now);
        detector.heard(1, at(Phase::reducing, 1), now);
    }

    EXPECT_FALSE(detector.judge(29.9));
    const auto stall = detector.judge(30.1);

    ASSERT_TRUE(stall);
    EXPECT_TRUE(stall->is_lost);
    EXPECT_THAT(stall->ranks, ElementsAre(2));
    EXPECT_THAT(
        stall->text,
        StartsWith("rank 2 on node03 was not heard from for 10 s (last seen computing update 12)"));
}

TEST(StallDetectorTest, ARankNeverHeardFromIsLostToo) {
    StallDetector detector = three_ranks();
    detector.heard(0, at(Phase::starting, 1), 10);
    detector.heard(1, at(Phase::starting, 1), 10);

    EXPECT_FALSE(detector.judge(9.9));
    EXPECT_THAT(detector.judge(10.1)->ranks, ElementsAre(2));
}

TEST(StallDetectorTest, ARankThatLeftInOrderIsNotMissed) {
    StallDetector detector = three_ranks();
    detector.left(1);
    detector.left(2);
    detector.heard(0, at(Phase::ending, 1), 1000);

    EXPECT_FALSE(detector.judge(1000));
    detector.left(0);
    EXPECT_FALSE(detector.judge(5000));
}

TEST(StallDetectorTest, WhenAllWaitForEachOtherCommunicationIsStuck) {
    StallDetector detector = three_ranks();
    detector.heard(0, at(Phase::reducing, 9), 20);
    detector.heard(1, at(Phase::reducing, 7), 20);
    detector.heard(2, at(Phase::reducing, 30), 20);

    EXPECT_FALSE(detector.judge(22.9));
    const auto stall = detector.judge(23.1);

    ASSERT_TRUE(stall);
    EXPECT_THAT(stall->ranks, ElementsAre(0, 1, 2));
    EXPECT_THAT(stall->text,
                StartsWith("all ranks wait for each other, reducing update 12 for 12 s ("));
}

// The ranks behave like one whose device hangs in the middle of a collective.
TEST(StallDetectorTest, OfRanksThatAllWaitThoseBehindAreNamed) {
    StallDetector detector = three_ranks();
    Activity ahead = at(Phase::agreeing, 11);
    ++ahead.update;
    detector.heard(0, ahead, 20);
    detector.heard(1, at(Phase::reducing, 12), 20);
    detector.heard(2, waiting_at(Phase::validating, 12), 20);

    EXPECT_THAT(detector.judge(20)->text,
                StartsWith("all ranks wait for each other, rank 1 on node02 is behind, "
                           "reducing update 12 for 12 s"));
}

TEST(StallDetectorTest, ALongTransferBeforeIsAllowedAgain) {
    StallDetector detector = three_ranks();
    for (int rank = 0; rank < 3; ++rank)
        detector.heard(rank, at(Phase::reducing, 62, rank == 1 ? 55 : 0), 100);

    EXPECT_FALSE(detector.judge(102.9));
    EXPECT_TRUE(detector.judge(103.1));
}

// A scheduler suspends the job for an hour: nobody could be heard.
TEST(StallDetectorTest, AProcessThatStoodStillMissedNobody) {
    StallDetector detector = three_ranks();
    for (int rank = 0; rank < 3; ++rank)
        detector.heard(rank, at(Phase::computing, 1), 10);

    detector.stood_still(3600);

    EXPECT_FALSE(detector.judge(3610));
}

TEST(StallDetectorTest, OfOneRankTheSilenceAloneIsJudged) {
    StallDetector detector = three_ranks();
    detector.heard(0, at(Phase::computing, 500), 20);

    EXPECT_FALSE(detector.judge_silence(0, 2, 31.9));
    EXPECT_THAT(detector.judge_silence(0, 2, 32.1)->ranks, ElementsAre(0));
    detector.left(0);
    EXPECT_FALSE(detector.judge_silence(0, 2, 32.1));
}

TEST(StallDetectorTest, AloneARankJudgesItsWork) {
    StallDetector detector = three_ranks();
    detector.left(0);
    detector.left(2);
    detector.heard(1, at(Phase::reducing, 500), 20);
    EXPECT_FALSE(detector.judge_work(20));

    detector.heard(1, at(Phase::computing, 11), 21);
    EXPECT_THAT(detector.judge_work(21)->ranks, ElementsAre(1));
}

TEST(StallDetectorTest, OfManyRanksEightAreNamed) {
    StallDetector detector{std::vector<std::string>(20, "node01"), timeout, 0};

    const auto stall = detector.judge(11);

    ASSERT_TRUE(stall);
    EXPECT_EQ(stall->ranks.size(), 20U);
    EXPECT_THAT(stall->text, HasSubstr(" and 12 more were not heard from"));
}

}  // namespace
}  // namespace hetseq
