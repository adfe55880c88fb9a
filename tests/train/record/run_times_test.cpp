#include "hetseq/train/record/run_times.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TimedUpdate taking(double ms) {
    return {.step_ms = ms,
            .times = {{RankTime::compute, ms / 2}},
            .samples = 10,
            .units = 30,
            .own_units = 5};
}

RunTimes run_of(int updates) {
    RunTimes times;
    for (int i = 0; i < updates; ++i)
        times.add(taking(i < 10 ? 1000 + i : 200));
    return times;
}

// A tenth of the first updates, at most 10.
TEST(RunTimesTest, TheSteadyStateIsWithoutTheFirstUpdates) {
    EXPECT_EQ(run_of(9).steady().updates(), 9);
    EXPECT_EQ(run_of(39).steady().updates(), 36);
    EXPECT_EQ(run_of(100).steady().updates(), 90);
    EXPECT_EQ(run_of(1000).steady().updates(), 990);
    EXPECT_EQ(run_of(12).steady().step_ms.median(), 1004);  // of 200, 200, 1001 to 1009
    EXPECT_EQ(run_of(1000).steady().step_ms.spread().p90, 200);
    EXPECT_DOUBLE_EQ(run_of(1000).samples_per_second(), 50);
    EXPECT_DOUBLE_EQ(run_of(1000).units_per_second(), 150);
    EXPECT_DOUBLE_EQ(run_of(1000).steady().unit_ms.median(), 20);
    EXPECT_EQ(run_of(1000).updates(), 1000);
    EXPECT_EQ(run_of(1000).own_units(), 5000);
    EXPECT_EQ(run_of(1000).longest_step_ms(), 1009);
}

TEST(RunTimesTest, AlikeAreFullBatchesThatWereCutLikeTheLastOne) {
    RunTimes times;
    for (int i = 0; i < 3000; ++i) {
        TimedUpdate update = taking(i < 2000 ? 100 : 300);
        update.cut_since = i < 2000 ? 0 : 2000;
        update.is_full = i % 4 != 3;
        update.step_ms /= update.is_full ? 1 : 2;
        times.add(update);
    }

    EXPECT_EQ(times.alike().updates(), 750);
    EXPECT_DOUBLE_EQ(times.alike().step_ms.spread().p10, 300);
    EXPECT_NEAR(times.steady().step_ms.spread().p10, 50, 0.25);
}

TEST(RunTimesTest, FewUpdatesOfTheLastCutTellNothing) {
    RunTimes times = run_of(100);
    TimedUpdate other = taking(5000);
    other.cut_since = 100;
    for (int i = 0; i < 4; ++i)
        times.add(other);

    EXPECT_EQ(times.alike().updates(), 94);
    times.add(other);
    EXPECT_EQ(times.alike().updates(), 5);
    EXPECT_EQ(times.alike().step_ms.median(), 5000);
}

TEST(RunTimesTest, WhereNoBatchIsFullAllCount) {
    RunTimes times;
    for (int i = 0; i < 3; ++i) {
        TimedUpdate update = taking(100);
        update.is_full = false;
        times.add(update);
    }

    EXPECT_EQ(times.alike().updates(), 3);
    EXPECT_EQ(times.alike().step_ms.median(), 100);
}

// The first update of 590 ms computed all; the others were applied in a burst.
RunTimes late_run(std::int64_t computed) {
    RunTimes times;
    for (int i = 0; i < 3; ++i) {
        TimedUpdate update = taking(i == 0 ? 590 : 5);
        update.is_timed = false;
        update.computed = i == 0 ? computed : 0;
        times.add(update);
    }
    return times;
}

TEST(RunTimesTest, ARunThatIsNotLongerThanItsStalenessHasTheRatesOfAllUpdates) {
    EXPECT_DOUBLE_EQ(late_run(3).samples_per_second(), 50);
    EXPECT_DOUBLE_EQ(late_run(3).units_per_second(), 150);
    EXPECT_EQ(late_run(3).steady().updates(), 0);
}

TEST(RunTimesTest, UpdatesThatOthersComputedOrThatAreStillToBeAppliedTellNoRate) {
    EXPECT_EQ(late_run(0).samples_per_second(), 0);  // by the start before
    EXPECT_EQ(late_run(5).samples_per_second(), 0);
}

TEST(RunTimesTest, LateTimesAreThoseOfAllSteadyUpdates) {
    RunTimes times = run_of(100);
    for (int i = 0; i < 50; ++i)
        times.add_late(RankTime::optimizer, i < 5 ? 1000 : 7);

    EXPECT_EQ(times.steady().by_time[RankTime::optimizer].count(), 45);
    EXPECT_EQ(times.steady().by_time[RankTime::optimizer].median(), 7);
    EXPECT_EQ(times.alike().by_time[RankTime::optimizer].spread().p90, 7);
    EXPECT_EQ(times.steady().by_time[RankTime::compute].median(), 100);
    EXPECT_EQ(times.steady().by_time[RankTime::reduce].count(), 0);  // never measured
}

}  // namespace
}  // namespace hetseq
