#include "hetseq/train/watch/watchdog.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::HasSubstr;

class WatchdogTest : public testing::Test {
protected:
    void SetUp() override {
        if (test::environment().thread_support() != ThreadSupport::multiple)
            GTEST_SKIP() << "this MPI gives no MPI_THREAD_MULTIPLE";
        activity::enter(Phase::starting, 0);
    }

    WatchdogOptions options(double stall_timeout) {
        return {
            .stall_timeout = stall_timeout, .period = 1000ms, .end = [this](const Stall& stall) {
                const std::lock_guard lock{mutex_};
                ends_.push_back(stall);
            }};
    }

    // Waits until the watchdog of this rank has spoken.
    std::optional<Stall> first_end(std::chrono::seconds limit = 20s) {
        const auto deadline = Clock::now() + limit;
        while (Clock::now() < deadline) {
            std::this_thread::sleep_for(10ms);
            const std::lock_guard lock{mutex_};
            if (!ends_.empty())
                return ends_.front();
        }
        return {};
    }

    std::int64_t ends_of_all_ranks() {
        const std::lock_guard lock{mutex_};
        return world_.all_reduce(static_cast<std::int64_t>(ends_.size()), ReduceOp::sum);
    }

    // Until that rank has come here as well. The job's activity stays as it is, that of a rank that
    // stalls.
    void wait_for(int rank) {
        std::thread([&] {
            EXPECT_EQ(world_.broadcast(std::int64_t{world_.rank() == rank ? 1 : 0}, rank), 1);
        }).join();
    }

    // A rank alone.
    void expect_nobody_is_missed() {
        const Watchdog watchdog{test::environment(), world_, options(1)};
        activity::enter(Phase::reducing, 3);
        std::this_thread::sleep_for(1500ms);
        EXPECT_EQ(ends_of_all_ranks(), 0);
    }

    int last_rank() const { return world_.size() - 1; }
    bool is_last() const { return world_.rank() == last_rank(); }

    HostComm world_ = test::world();
    std::mutex mutex_;
    std::vector<Stall> ends_;
};

TEST_F(WatchdogTest, ARankThatSleepsIsNamedByRankZeroAlone) {
    std::optional<Stall> stall;
    {
        const Watchdog watchdog{test::environment(), world_, options(1)};
        activity::enter(is_last() ? Phase::computing : Phase::reducing, 3);
        if (world_.rank() == 0)
            stall = first_end();
        wait_for(0);
    }

    EXPECT_EQ(ends_of_all_ranks(), 1);
    if (world_.rank() != 0)
        return;
    ASSERT_TRUE(stall);
    EXPECT_THAT(stall->text, HasSubstr("computing update 3 for 1"));
    EXPECT_THAT(stall->ranks, testing::ElementsAre(last_rank()));
}

TEST_F(WatchdogTest, ASleepingRankZeroNamesItself) {
    {
        const Watchdog watchdog{test::environment(), world_, options(1)};
        activity::enter(Phase::saving, 3);
        if (world_.rank() == 0)
            first_end();
        world_.barrier();
    }

    EXPECT_EQ(ends_of_all_ranks(), 1);
    if (world_.rank() == 0) {
        EXPECT_THAT(ends_.at(0).ranks, testing::ElementsAre(0));
        EXPECT_THAT(ends_.at(0).text, HasSubstr("rank 0 on "));
        EXPECT_THAT(ends_.at(0).text, HasSubstr("saving after update 3 for 1"));
    }
}

TEST_F(WatchdogTest, ARankWithoutBeatsIsNamed) {
    if (world_.size() == 1)
        return expect_nobody_is_missed();
    std::optional<Stall> stall;
    {
        WatchdogOptions choice = options(is_last() ? 3600 : 1);
        if (is_last())
            choice.period = 1h;
        const Watchdog watchdog{test::environment(), world_, choice};
        activity::enter(Phase::reducing, 3);
        if (world_.rank() == 0)
            stall = first_end();
        wait_for(0);
    }

    EXPECT_EQ(ends_of_all_ranks(), 1);
    if (world_.rank() != 0)
        return;
    ASSERT_TRUE(stall);
    EXPECT_THAT(stall->ranks, testing::ElementsAre(last_rank()));
    EXPECT_THAT(stall->text, HasSubstr("was not heard from for 1"));
}

TEST_F(WatchdogTest, ARankZeroWithoutBeatsIsNamedByRankOne) {
    if (world_.size() == 1)
        return expect_nobody_is_missed();
    std::optional<Stall> stall;
    {
        WatchdogOptions choice = options(world_.rank() == 0 ? 3600 : 1);
        if (world_.rank() == 0)
            choice.period = 1h;
        const Watchdog watchdog{test::environment(), world_, choice};
        activity::enter(Phase::reducing, 3);
        if (world_.rank() == 1)
            stall = first_end();
        wait_for(1);
    }

    if (world_.rank() != 1)
        return;
    ASSERT_TRUE(stall);
    EXPECT_THAT(stall->ranks, testing::ElementsAre(0));
}

// One rank has no work and waits for those that compute and validate, each step within the timeout
// and all of them together beyond it.
TEST_F(WatchdogTest, AnIdleRankAndLongValidationAreNoStall) {
    const bool idle = is_last() && world_.size() > 1;
    bool called = false;
    {
        const Watchdog watchdog{test::environment(), world_, options(2)};
        for (const Phase phase : {Phase::computing, Phase::validating})
            for (int step = 0; step < 2 && !idle; ++step) {
                activity::enter(phase, 1);
                std::this_thread::sleep_for(800ms);
            }
        activity::enter(Phase::agreeing, 1);
        world_.barrier();
        called = ends_of_all_ranks() > 0;
    }

    EXPECT_FALSE(called);
    EXPECT_EQ(ends_of_all_ranks(), 0);
}

// If nobody answered a farewell, this would take an hour.
TEST_F(WatchdogTest, AllThatEndTogetherEndAtOnce) {
    WatchdogOptions choice = options(300);
    choice.farewell = 1h;
    for (int i = 0; i < 5; ++i) {
        const Watchdog watchdog{test::environment(), world_, choice};
    }
    EXPECT_EQ(ends_of_all_ranks(), 0);
}

// The other ranks wait for its last beat, and it would wait an hour for theirs.
TEST_F(WatchdogTest, AnExceptionIsNotHeldUp) {
    WatchdogOptions choice = options(300);
    choice.farewell = is_last() ? std::chrono::milliseconds(1h) : 100ms;
    bool is_thrown = false;
    try {
        const Watchdog watchdog{test::environment(), world_, choice};
        if (is_last())
            throw std::runtime_error("on purpose");
    } catch (const std::runtime_error&) {
        is_thrown = true;
    }
    EXPECT_EQ(is_thrown, is_last());
    world_.barrier();
}

// Each rank works beyond the timeout, and all are heard.
TEST_F(WatchdogTest, ByItsSilenceNoWorkingRankIsNamed) {
    WatchdogOptions choice = options(1);
    choice.judge = Judge::silence;
    bool called = false;
    {
        const Watchdog watchdog{test::environment(), world_, choice};
        activity::enter(Phase::computing, 3);
        std::this_thread::sleep_for(1500ms);
        called = ends_of_all_ranks() > 0;
    }
    EXPECT_FALSE(called);
}

TEST_F(WatchdogTest, JudgesByWorkOnceItIsTold) {
    WatchdogOptions choice = options(0);
    choice.judge = Judge::silence;
    {
        Watchdog watchdog{test::environment(), world_, choice};
        watchdog.change(1, Judge::work_and_silence);
        activity::enter(Phase::optimizing, 3);
        if (world_.rank() == 0)
            first_end();
        wait_for(0);
    }

    EXPECT_EQ(ends_of_all_ranks(), 1);
    if (world_.rank() == 0) {
        EXPECT_THAT(ends_.at(0).text, HasSubstr("optimizing update 3 for "));
    }
}

TEST_F(WatchdogTest, WithoutATimeoutNobodyWatches) {
    const Watchdog watchdog{test::environment(), world_, options(0)};
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(ends_of_all_ranks(), 0);
}

}  // namespace
}  // namespace hetseq
