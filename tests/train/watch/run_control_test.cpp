#include "hetseq/train/watch/run_control.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/signal_inbox.hpp"

#include "util/temporary_folder.hpp"

namespace hetseq {
namespace {

TEST(RunControlTest, LeavesRoomForAnUpdateAndTheCheckpoint) {
    const double limit = 100;
    const auto asked_after = [&](double seconds, double update_s, double checkpoint_s) {
        RunControl control({.start_seconds = monotonic_seconds() - seconds,
                            .time_limit_s = limit,
                            .watches_clock = true});
        return control.requests(update_s, checkpoint_s).stop() == StopReason::time_limit;
    };
    EXPECT_FALSE(asked_after(50, 10, 10));
    EXPECT_FALSE(asked_after(70, 10, 10));  // 30 s left, 10 + 15 needed
    EXPECT_TRUE(asked_after(80, 10, 10));   // 20 s left
    EXPECT_TRUE(asked_after(120, 0, 0));
}

TEST(RunControlTest, TheTimeLimitCountsAfterTheLeastUpdates) {
    RunControl control({.start_seconds = monotonic_seconds() - 10,
                        .time_limit_s = 1,
                        .least_updates = 2,
                        .watches_clock = true});

    EXPECT_EQ(control.requests(0, 0).stop(), StopReason::none);
    EXPECT_EQ(control.requests(0, 0).stop(), StopReason::none);
    EXPECT_EQ(control.requests(0, 0).stop(), StopReason::time_limit);
}

TEST(RunControlTest, OneRankAloneWatchesTheClock) {
    RunControl control({.start_seconds = monotonic_seconds() - 10, .time_limit_s = 1});
    control.save_every(1e-15);
    const Requests requests = control.requests(0, 0);
    EXPECT_EQ(requests.stop(), StopReason::none);
    EXPECT_FALSE(requests.save());
}

TEST(RunControlTest, AStopFileIsSeenAndTakenAway) {
    const test::TemporaryFolder folder;
    const RunControlOptions options{.stop_file = folder / "STOP"};
    EXPECT_EQ(RunControl(options).requests(0, 0).stop(), StopReason::none);
    folder.write("STOP", "");
    RunControl control(options);
    EXPECT_EQ(control.requests(0, 0).stop(), StopReason::stop_file);
    control.end();
    EXPECT_EQ(folder.size(), 0);
    EXPECT_EQ(RunControl(options).requests(0, 0).stop(), StopReason::none);
}

TEST(RunControlTest, SavesByTheClock) {
    RunControl control({.watches_clock = true});
    EXPECT_FALSE(control.requests(0, 0).save());
    control.save_every(3600);
    EXPECT_FALSE(control.requests(0, 0).save());
    control.save_every(1e-15);
    EXPECT_EQ(control.requests(0, 0).save_clock, 1);
}

TEST(RunControlTest, ACheckpointAnswersTheSignalsBeforeIt) {
    signal_inbox::open();
    signal_inbox::choose({}, {SIGUSR2});
    RunControl control({});
    std::raise(SIGUSR2);
    control.saved(true);
    EXPECT_FALSE(control.requests(0, 0).save());

    std::raise(SIGUSR2);
    EXPECT_EQ(control.requests(0, 0).save_signal, 1);
    EXPECT_FALSE(control.requests(0, 0).save());
    signal_inbox::release();
}

TEST(RunControlTest, ACheckpointThatTheClockAskedForAnswersNoSignal) {
    signal_inbox::open();
    signal_inbox::choose({}, {SIGUSR2});
    RunControl control({});
    control.saved(true);  // forgets signals of other tests
    std::raise(SIGUSR2);
    control.saved(false);
    EXPECT_EQ(control.requests(0, 0).save_signal, 1);
    signal_inbox::release();
}

TEST(RunControlTest, ASignalThatAnotherRankTookFirstIsTheSameRequestForAWhile) {
    signal_inbox::open();
    signal_inbox::choose({}, {SIGUSR2});
    RunControl control({}), later({.same_request_s = 0});
    for (RunControl* each : {&control, &later}) {
        each->saved(true);
        each->hear({.save_clock = 1});
        std::raise(SIGUSR2);
        EXPECT_EQ(each->requests(0, 0).save_signal, 1);

        each->hear({.save_signal = 1});
        std::raise(SIGUSR2);
    }

    EXPECT_FALSE(control.requests(0, 0).save());
    EXPECT_EQ(later.requests(0, 0).save_signal, 1);
    signal_inbox::release();
}

TEST(RunControlTest, AnyRankMayAskAndTheFirstReasonIsTold) {
    EXPECT_EQ((Requests{.signal = 1, .time_limit = 1}).stop(), StopReason::signal);
    EXPECT_EQ((Requests{.stop_file = 3}).stop(), StopReason::stop_file);
    EXPECT_EQ((Requests{.save_signal = 3}).stop(), StopReason::none);
}

}  // namespace
}  // namespace hetseq
