#include "hetseq/comm/heartbeats.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

class HeartbeatsTest : public testing::Test {
protected:
    Activity computing(std::int64_t update) const {
        Activity activity;
        activity.phase = Phase::computing;
        activity.update = update;
        activity.seconds = 0.25 * world_.rank();
        return activity;
    }

    static std::string role_of(int rank) {
        return rank == 0 ? "" : "stage " + std::to_string(rank);
    }

    // Beats of `update` until one of that update came from everybody who sends here.
    std::map<int, Beat> exchange(Heartbeats& heartbeats, std::int64_t update) {
        const std::size_t senders =
            world_.rank() == 0 ? static_cast<std::size_t>(world_.size() - 1) : 1;
        std::map<int, Beat> heard;
        const auto deadline = Clock::now() + 20s;
        heartbeats.send(computing(update), role_of(world_.rank()));
        while (heard.size() < senders && Clock::now() < deadline) {
            heartbeats.receive([&](int rank, const Beat& beat) {
                if (beat.activity.update == update)
                    heard[rank] = beat;
            });
            std::this_thread::sleep_for(1ms);
        }
        return heard;
    }

    bool alone() const { return world_.size() == 1; }

    HostComm world_ = test::world();
};

TEST_F(HeartbeatsTest, RankZeroHearsAllAndAllHearRankZero) {
    Heartbeats heartbeats{world_};
    for (std::int64_t update = 1; update <= 3 && !alone(); ++update) {
        const auto heard = exchange(heartbeats, update);
        world_.barrier();  // the next beat finds this one gone

        if (world_.rank() == 0)
            EXPECT_EQ(heard.size(), static_cast<std::size_t>(world_.size() - 1));
        else
            EXPECT_EQ(heard.size(), 1U);
        for (const auto& [rank, beat] : heard) {
            EXPECT_EQ(beat.activity.phase, Phase::computing);
            EXPECT_EQ(beat.activity.seconds, 0.25 * rank);
            EXPECT_FALSE(beat.last);
            EXPECT_EQ(beat.role.data(), role_of(rank));
        }
    }
    EXPECT_TRUE(heartbeats.finish(20s));
}

// They run on a thread of their own while the main one is busy with other collectives.
TEST_F(HeartbeatsTest, PassBesideOtherCollectives) {
    if (test::environment().thread_support() != ThreadSupport::multiple)
        GTEST_SKIP() << "this MPI gives no MPI_THREAD_MULTIPLE";
    Heartbeats heartbeats{world_};
    std::atomic<std::int64_t> heard = 0;
    bool finished = false;
    std::jthread beating([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            heartbeats.send(computing(1));
            heartbeats.receive([&](int, const Beat&) { ++heard; });
            std::this_thread::sleep_for(1ms);
        }
        finished = heartbeats.finish(20s);
    });

    // Until each rank has heard something, or for as long as it should never take.
    const auto deadline = Clock::now() + 20s;
    std::int64_t least = 0;
    do {
        for (int i = 0; i < 100; ++i)
            least = world_.all_reduce(heard.load(), ReduceOp::min);
        least = Clock::now() < deadline ? least : 1;
        least = world_.all_reduce(least, ReduceOp::max);
    } while (least == 0 && !alone());
    beating.request_stop();
    beating.join();

    EXPECT_TRUE(finished);
    EXPECT_EQ(heard > 0, !alone());
}

TEST_F(HeartbeatsTest, ABeatWhosePredecessorIsUnderWayIsSkippedAndNobodyWaits) {
    Heartbeats heartbeats{world_};
    const auto begin = Clock::now();
    for (int i = 0; i < 20000; ++i)  // far more than fit on the way
        heartbeats.send(computing(i));
    EXPECT_LT(Clock::now() - begin, 20s);
    world_.barrier();
    EXPECT_TRUE(heartbeats.finish(20s));
}

TEST_F(HeartbeatsTest, AnEarlyEndIsHeardAndNotWaitedForBeyondTheLimit) {
    Heartbeats heartbeats{world_};
    const bool last = world_.rank() == world_.size() - 1 && !alone();
    if (last) {
        EXPECT_FALSE(heartbeats.finish(50ms));
    }
    world_.barrier();
    if (world_.rank() == 0 && !alone()) {
        bool heard = false;
        const auto deadline = Clock::now() + 20s;
        while (!heard && Clock::now() < deadline)
            heartbeats.receive([&](int rank, const Beat& beat) {
                heard = heard || (beat.last && rank == world_.size() - 1);
            });
        EXPECT_TRUE(heard);
    }
    EXPECT_TRUE(heartbeats.finish(20s));
}

TEST_F(HeartbeatsTest, AbandonedOnesNeitherWaitNorDisturbOthers) {
    {
        Heartbeats abandoned{world_};
        abandoned.send(computing(1));
    }
    Heartbeats next{world_};
    if (!alone()) {
        EXPECT_FALSE(exchange(next, 2).empty());
    }
    world_.barrier();
    EXPECT_TRUE(next.finish(20s));
}

}  // namespace
}  // namespace hetseq
