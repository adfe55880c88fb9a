#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/resource.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/fault_point.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"

#include "comm/mpi/peers/channels.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {

namespace test {
namespace {
std::atomic<const char*> failing_point = "";  // the fault point that throws
}  // namespace
}  // namespace test

// In the place of the program's own, which does nothing.
void fault_point(const char* name, std::int64_t) {
    if (name == std::string(test::failing_point))
        throw std::runtime_error("a fault on purpose");
}

namespace {

using namespace std::chrono_literals;
using test::comm_error_of;
using test::make_channel;
using test::others;
using test::spokes;
using testing::HasSubstr;

TEST(PeerChannelFaultsTest, AMissingMessageIsAnErrorThatNamesTheRank) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, spokes(world), {.deadline = 300ms});

    if (world.rank() != 0) {
        const std::string text = comm_error_of([&] { channel->receive(0); });
        EXPECT_THAT(text, HasSubstr("no message from rank 0 on " + host_name() + " within 0.3 s"));
        EXPECT_EQ(comm_error_of([&] { channel->receive(0); }), text);
        EXPECT_EQ(comm_error_of([&] { channel->start_send(0, {}); }), text);
        EXPECT_EQ(comm_error_of([&] { channel->wait_for_sends(); }), text);
    }
    world.barrier();
}

TEST(PeerChannelFaultsTest, ARankThatTakesNothingIsNamedAtTheDeadline) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, spokes(world), {.most_waiting = 1, .deadline = 300ms});

    if (world.rank() != 0) {
        channel->start_send(0, {at::ones({10})});
        channel->start_send(0, {at::ones({10})});
        EXPECT_THAT(comm_error_of([&] { channel->wait_for_sends(); }),
                    HasSubstr("rank 0 on " + host_name() + " has not taken a message within"));
    }
    world.barrier();
}

// The deadline counts from the last movement: all messages together take longer.
TEST(PeerChannelFaultsTest, ASlowPeerIsWaitedFor) {
    const HostComm world = test::world();
    const auto channel = make_channel(
        world, spokes(world), {.piece_bytes = 1000, .most_waiting = 1, .deadline = 1500ms});
    constexpr int messages = 16;

    if (world.rank() == 0)
        for (int i = 0; i < messages; ++i) {
            std::this_thread::sleep_for(120ms);
            for (const int peer : spokes(world))
                channel->receive(peer);
        }
    else
        for (int i = 0; i < messages; ++i)
            channel->start_send(0, {at::ones({100})});
    channel->wait_for_sends();
}

TEST(PeerChannelFaultsTest, AnAbandonedWaitEndsSoon) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, spokes(world));

    if (world.rank() != 0) {
        std::thread ending([&] {
            std::this_thread::sleep_for(100ms);
            channel->abandon();
        });
        EXPECT_THAT(comm_error_of([&] { channel->receive(0); }), HasSubstr("were abandoned"));
        ending.join();
        EXPECT_THAT(comm_error_of([&] { channel->wait_for_sends(); }), HasSubstr("were abandoned"));
    }
    world.barrier();
}

TEST(PeerChannelFaultsTest, DestructionFinishesWhatWasSent) {
    const HostComm world = test::world();
    auto channel = make_channel(world, spokes(world), test::small_pieces);
    const at::Tensor values = at::arange(1 << 20);

    if (world.rank() == 0) {
        std::this_thread::sleep_for(100ms);
        for (const int peer : spokes(world))
            test::expect_equal(channel->receive(peer), {values});
    } else {
        channel->start_send(0, {values});
    }
    channel.reset();

    EXPECT_EQ(values.storage().use_count(), 1);
}

// Nobody receives what was sent.
TEST(PeerChannelFaultsTest, AnExceptionAbandonsWhatWasSent) {
    const HostComm world = test::world();
    const auto begin = std::chrono::steady_clock::now();
    const at::Tensor values = at::ones({1 << 20});

    try {
        const auto channel = make_channel(world, spokes(world), {.most_waiting = 1});
        if (world.rank() != 0)
            for (int i = 0; i < 3; ++i)
                channel->start_send(0, {values});
        throw std::runtime_error("what ends this rank");
    } catch (const std::runtime_error&) {
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    }
    world.barrier();
}

double processor_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(PeerChannelFaultsTest, AWaitingRankLeavesItsCore) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, spokes(world));
    world.barrier();
    const double before = processor_seconds();

    if (world.rank() == 0)
        std::this_thread::sleep_for(1s);
    for (const int peer : spokes(world))
        channel->start_send(peer, {});
    for (const int peer : spokes(world))
        channel->receive(peer);

    EXPECT_LT(processor_seconds() - before, 0.1);
}

TEST(PeerChannelFaultsTest, LessThreadSupportOnOneRankIsRefusedByAll) {
    const HostComm world = test::world();
    const ThreadSupport threads =
        world.rank() == world.size() - 1 ? ThreadSupport::serialized : ThreadSupport::multiple;

    EXPECT_THAT(comm_error_of([&] { PeerChannel(world, others(world), at::kCPU, threads, {}); }),
                HasSubstr("less than MPI_THREAD_MULTIPLE"));
}

TEST(PeerChannelFaultsTest, OneSidedPeersAreRefusedByAllRanks) {
    const HostComm world = test::world();
    const std::vector<int> one_sided = world.rank() == 0 ? others(world) : std::vector<int>{};
    const std::vector<int> itself = world.rank() == 0 ? std::vector{0} : std::vector<int>{};

    if (world.size() > 1) {
        EXPECT_THROW(make_channel(world, one_sided), InternalError);
    }
    EXPECT_THROW(make_channel(world, itself), InternalError);
}

TEST(PeerChannelFaultsTest, FaultPointsAreOnTheCallersThread) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, others(world));

    for (const int peer : others(world)) {
        test::failing_point = "pipeline_send";
        EXPECT_THROW(channel->start_send(peer, {}), std::runtime_error);
        test::failing_point = "pipeline_receive";
        EXPECT_THROW(channel->receive(peer), std::runtime_error);
        test::failing_point = "";
    }
}

}  // namespace
}  // namespace hetseq
