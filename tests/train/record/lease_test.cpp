#include "hetseq/train/record/lease.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Verdict = LeaseJudge::Verdict;

LeaseHolder holder_of(const std::string& token, const std::string& host = "node07") {
    return {.token = token,
            .host = host,
            .boot = "boot of " + host,
            .pid_namespace = "pid:[1]",
            .pid = 123,
            .process_start = 4567};
}

std::string text_of(const LeaseHolder& holder, std::int64_t beats) {
    return lease_json({holder, beats});
}

// One process looks, once a second by its own clock.
class LeaseJudgeTest : public testing::Test {
protected:
    LeaseJudge judge_for(const LeaseHolder& self, bool alive = true) const {
        return LeaseJudge(self, {}, [alive](const LeaseHolder&) { return alive; });
    }
    // Looks at a lease that does not change until there is a verdict.
    Verdict watch(LeaseJudge& judge, const std::string& text) {
        Verdict verdict = Verdict::wait;
        for (seconds_ = 0; verdict == Verdict::wait && seconds_ < 1000; ++seconds_, ++now_)
            verdict = judge.judge(text, now_);
        return verdict;
    }
    // The same at one that gets a beat every 5 s.
    Verdict watch_beating(LeaseJudge& judge, const LeaseHolder& holder) {
        Verdict verdict = Verdict::wait;
        for (seconds_ = 0; verdict == Verdict::wait && seconds_ < 1000; ++seconds_, ++now_)
            verdict = judge.judge(text_of(holder, seconds_ / 5), now_);
        return verdict;
    }

    int seconds_ = 0;
    double now_ = 1e6;
};

TEST_F(LeaseJudgeTest, AFolderWithoutOneIsFree) {
    LeaseJudge judge = judge_for(holder_of("own"));
    EXPECT_EQ(judge.judge(std::nullopt, 0), Verdict::take);
}

TEST_F(LeaseJudgeTest, AProcessOfThisHostThatIsGoneIsSucceededAtOnce) {
    LeaseJudge judge = judge_for(holder_of("own"), /*alive=*/false);
    EXPECT_EQ(judge.judge(text_of(holder_of("other"), 9), 0), Verdict::take);
    EXPECT_EQ(judge.why(), "process 123 on node07 is gone");
}

TEST_F(LeaseJudgeTest, AProcessThatBeatsKeepsTheFolder) {
    LeaseJudge judge = judge_for(holder_of("own", "node08"));
    EXPECT_EQ(watch_beating(judge, holder_of("other")), Verdict::refuse);
    EXPECT_LE(seconds_, 7);
    EXPECT_EQ(judge.why(), "process 123 on node07 trains into it");
}

TEST_F(LeaseJudgeTest, AProcessWithoutABeatForAMinuteIsSucceeded) {
    for (const char* host : {"node07", "node08"}) {
        LeaseJudge judge = judge_for(holder_of("own", host));
        EXPECT_EQ(watch(judge, text_of(holder_of("other"), 9)), Verdict::take) << host;
        EXPECT_EQ(seconds_, 61) << host;
    }
}

// The number of a process says nothing in another container, after a boot or on another host.
TEST_F(LeaseJudgeTest, AProcessThatCannotBeSeenIsNotTakenForDead) {
    LeaseHolder container = holder_of("other"), boot = holder_of("other"), old = holder_of("other");
    container.pid_namespace = "pid:[2]";
    boot.boot = "another";
    old.pid_namespace = "";
    for (const LeaseHolder& other : {container, boot, old, holder_of("other", "node08")}) {
        LeaseJudge judge = judge_for(holder_of("own"), /*alive=*/false);
        EXPECT_EQ(judge.judge(text_of(other, 9), 0), Verdict::wait);
        EXPECT_EQ(judge.judge(text_of(other, 10), 1), Verdict::refuse);
    }
}

TEST_F(LeaseJudgeTest, AnEarlierStartOfTheSameJobIsWaitedFor) {
    LeaseHolder own = holder_of("own", "node08"), earlier = holder_of("other");
    own.job = earlier.job = "77";
    LeaseJudge judge = judge_for(own);

    EXPECT_EQ(watch_beating(judge, earlier), Verdict::refuse);

    EXPECT_EQ(seconds_, 601);
    EXPECT_EQ(judge.why(), "process 123 on node07 (job 77) trains into it");
}

// Each start of a chain has a job id of its own.
TEST_F(LeaseJudgeTest, AnEarlierJobOfTheSameChainIsWaitedFor) {
    LeaseHolder own = holder_of("own", "node08"), earlier = holder_of("other");
    own.job = "78";
    earlier.job = earlier.chain = own.chain = "77";
    LeaseJudge judge = judge_for(own);
    EXPECT_EQ(watch_beating(judge, earlier), Verdict::refuse);
    EXPECT_EQ(seconds_, 601);
    EXPECT_EQ(judge.why(), "process 123 on node07 (job 77) trains into it");
}

// A job script starts the program again when its mpirun has ended.
TEST_F(LeaseJudgeTest, AStartBeforeARestartWithinTheJobIsSucceededAtOnce) {
    LeaseHolder own = holder_of("own", "node08"), earlier = holder_of("other");
    own.restarted = 1;
    const auto verdict = [&] { return judge_for(own).judge(text_of(earlier, 5), 0); };
    EXPECT_EQ(verdict(), Verdict::wait);  // another job
    own.chain = earlier.chain = "local-77";
    EXPECT_EQ(verdict(), Verdict::take);
    own.job = "77";
    EXPECT_EQ(verdict(), Verdict::wait);
    earlier.job = "77";
    EXPECT_EQ(verdict(), Verdict::take);
    earlier.restarted = 1;
    EXPECT_EQ(verdict(), Verdict::wait);
}

TEST_F(LeaseJudgeTest, AnEarlierStartThatEndsMeanwhileIsSucceeded) {
    LeaseHolder own = holder_of("own", "node08"), earlier = holder_of("other");
    own.job = earlier.job = "77";
    LeaseJudge gone = judge_for(own), died = judge_for(own);
    for (int second = 0; second < 30; ++second)
        EXPECT_EQ(gone.judge(text_of(earlier, second), second), Verdict::wait);
    EXPECT_EQ(gone.judge(std::nullopt, 30), Verdict::take);
    for (int second = 0; second < 30; ++second)
        died.judge(text_of(earlier, second), second);
    EXPECT_EQ(watch(died, text_of(earlier, 29)), Verdict::take);
}

// A process that was suspended for an hour looks again.
TEST_F(LeaseJudgeTest, TimeInWhichNobodyLookedIsNoSilence) {
    LeaseJudge judge = judge_for(holder_of("own", "node08"));
    EXPECT_EQ(judge.judge(text_of(holder_of("other"), 9), 0), Verdict::wait);
    EXPECT_EQ(judge.judge(text_of(holder_of("other"), 9), 3600), Verdict::wait);
}

// Two starts wait for the same dead process, and the other one is faster.
TEST_F(LeaseJudgeTest, AnotherHolderIsJudgedAnew) {
    LeaseJudge judge = judge_for(holder_of("own", "node08"));
    for (int second = 0; second < 59; ++second)
        EXPECT_EQ(judge.judge(text_of(holder_of("dead"), 9), second), Verdict::wait);
    for (int second = 59; second < 65; ++second)
        EXPECT_EQ(judge.judge(text_of(holder_of("faster"), 0), second), Verdict::wait);
    EXPECT_EQ(judge.judge(text_of(holder_of("faster"), 1), 65), Verdict::refuse);
}

TEST_F(LeaseJudgeTest, WhatIsNoLeaseIsWatchedLikeOne) {
    for (const char* text : {"", "{\"beats\": ", "notes", "{}", "[1]"}) {
        LeaseJudge judge = judge_for(holder_of("own"), /*alive=*/false);
        EXPECT_EQ(watch(judge, text), Verdict::take) << text;
        EXPECT_EQ(seconds_, 61) << text;
    }
}

TEST(LeaseTest, KeepsItsLengthAsItBeats) {
    LeaseHolder holder = holder_of("other");
    holder.host = "a \"host\"";
    holder.job = "77.3";
    holder.chain = "70";
    holder.restarted = 3;
    const Lease lease{holder, 1'234'567};

    const auto read = parse_lease(lease_json(lease));

    ASSERT_TRUE(read);
    EXPECT_EQ(read->beats, 1'234'567);
    EXPECT_EQ(read->holder.host, holder.host);
    EXPECT_EQ(read->holder.process_start, 4567);
    EXPECT_EQ(read->holder.job, "77.3");
    EXPECT_EQ(read->holder.chain, "70");
    EXPECT_EQ(read->holder.restarted, 3);
    EXPECT_EQ(lease_json(lease).size(), lease_json({holder, 0}).size());
}

}  // namespace
}  // namespace hetseq
