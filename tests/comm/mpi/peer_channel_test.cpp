#include "hetseq/comm/mpi/peer_channel.hpp"

#include <chrono>
#include <future>
#include <random>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>

#include "hetseq/comm/communicator.hpp"

#include "comm/communicators.hpp"
#include "comm/mpi/peers/channels.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using test::expect_equal;
using test::make_channel;
using test::neighbours;
using test::others;
using test::small_pieces;
using test::spokes;

using Tensors = std::vector<at::Tensor>;

// All ranks can compute those of any rank.
Tensors tensors_of_all_kinds(int rank) {
    Tensors tensors;
    for (const at::ScalarType type :
         {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte})
        tensors.push_back((at::arange(700).reshape({7, 100}) % 97 + rank).to(type));
    tensors.push_back(at::arange(100) % (rank + 2) == 0);
    const at::Tensor table = at::arange(600, at::kFloat).reshape({20, 30}) * (rank + 1);
    for (const at::Tensor& view : {table.t(),
                                   table.slice(1, 3, 29, 5),
                                   table[2].expand({4, 30}),
                                   at::empty({0, 5}, at::kDouble),
                                   at::scalar_tensor(rank, at::kLong),
                                   at::Tensor{}})
        tensors.push_back(view);
    tensors.push_back(at::ones({2, 2}, at::kFloat).mul(rank).requires_grad_());
    return tensors;
}

TEST(PeerChannelTest, TensorsOfAllKindsArriveAsTheyWereSent) {
    const HostComm world = test::world();
    for (const PeerChannel::Options& options : {PeerChannel::Options{}, small_pieces}) {
        const auto channel = make_channel(world, others(world), options);

        for (const int peer : others(world))
            channel->start_send(peer, tensors_of_all_kinds(world.rank()));

        for (const int peer : others(world))
            expect_equal(channel->receive(peer), tensors_of_all_kinds(peer));
    }
}

TEST(PeerChannelTest, AMessageMayHoldNothing) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, others(world));

    for (const int peer : others(world)) {
        channel->start_send(peer, {});
        channel->start_send(peer, {at::Tensor{}, at::empty({0})});
    }

    for (const int peer : others(world)) {
        EXPECT_TRUE(channel->receive(peer).empty());
        expect_equal(channel->receive(peer), {at::Tensor{}, at::empty({0})});
    }
}

TEST(PeerChannelTest, AMessageMayHoldHundredsOfTensors) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, others(world));
    const auto many = [](int rank) {
        Tensors tensors;
        for (int i = 0; i < 300; ++i)
            tensors.push_back(at::full({1, 2, 1, i % 3, 1}, rank + 1000 * i, at::kLong));
        return tensors;
    };

    for (int round = 0; round < 3; ++round)
        for (const int peer : others(world))
            channel->start_send(peer, many(world.rank()));

    for (int round = 0; round < 3; ++round)
        for (const int peer : others(world))
            expect_equal(channel->receive(peer), many(peer));
}

TEST(PeerChannelTest, RequiresGradArrivesWithALeaf) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, others(world));
    const at::Tensor leaf = at::ones({3}).requires_grad_();

    for (const int peer : others(world))
        channel->start_send(peer, {leaf * 2, leaf.detach()});

    for (const int peer : others(world)) {
        const Tensors received = channel->receive(peer);
        EXPECT_TRUE(received[0].requires_grad());
        EXPECT_TRUE(received[0].is_leaf());
        EXPECT_FALSE(received[1].requires_grad());
    }
}

// 64 MiB each, so that a rank that sent before it received would wait for ever.
TEST(PeerChannelTest, LargeOnesPassBothWaysAtOnce) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, neighbours(world));
    const auto large = [](int rank) { return at::arange(rank, rank + (8 << 20)); };
    const at::Tensor own = large(world.rank());

    for (const int peer : neighbours(world))
        channel->start_send(peer, {own});

    for (const int peer : neighbours(world))
        expect_equal(channel->receive(peer), {large(peer)});
}

// Short, long, empty and none in turn: pieces of several messages are under way.
TEST(PeerChannelTest, ManyMessagesComeInOrder) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, others(world), small_pieces);
    const auto message = [](int rank, int i) -> Tensors {
        const std::int64_t length =
            std::vector{1, 700, 0, 1500, 3}[static_cast<std::size_t>(i) % 5];
        if (i % 7 == 0)
            return {};
        return {at::full({length}, i * 10 + rank, at::kInt), at::full({2}, i, at::kInt)};
    };
    constexpr int messages = 2000;

    for (int i = 0; i < messages; ++i)
        for (const int peer : others(world))
            channel->start_send(peer, message(world.rank(), i));

    for (int i = 0; i < messages; ++i)
        for (const int peer : others(world))
            expect_equal(channel->receive(peer), message(peer, i));
}

// Each stage multiplies by its own weight. The reference computes all stages on every rank.
TEST(PeerChannelTest, AChainPassesActivationsDownAndGradientsUp) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, neighbours(world));
    const auto weight_of = [](int rank) {
        return at::sin(at::arange(64 * 64, at::kDouble) + rank).reshape({64, 64}).requires_grad_();
    };
    const auto input = [](int batch) {
        return at::cos(at::arange(10 * 64, at::kDouble) * (batch + 1)).reshape({10, 64});
    };
    constexpr int batches = 6;
    const bool is_first = world.rank() == 0, is_last = world.rank() == world.size() - 1;
    const at::Tensor weight = weight_of(world.rank());

    std::vector<at::Tensor> in, out;
    for (int batch = 0; batch < batches; ++batch) {
        in.push_back(is_first ? input(batch) : channel->receive(world.rank() - 1).at(0));
        out.push_back(in.back().mm(weight));
        if (!is_last)
            channel->start_send(world.rank() + 1, {out.back()});
    }
    for (std::size_t batch = 0; batch < batches; ++batch) {
        if (is_last)
            out[batch].sum().backward();
        else
            out[batch].backward(channel->receive(world.rank() + 1).at(0));
        if (!is_first)
            channel->start_send(world.rank() - 1, {in[batch].grad()});
    }
    channel->wait_for_sends();

    std::vector<at::Tensor> weights;
    for (int rank = 0; rank < world.size(); ++rank)
        weights.push_back(weight_of(rank));
    for (int batch = 0; batch < batches; ++batch) {
        at::Tensor hidden = input(batch);
        for (const at::Tensor& each : weights)
            hidden = hidden.mm(each);
        hidden.sum().backward();
    }
    EXPECT_TRUE(at::equal(weight.grad(), weights[static_cast<std::size_t>(world.rank())].grad()));
}

// Rank 1 takes in so many that nobody has received, and no more.
TEST(PeerChannelTest, ASenderMayWaitUntilFewMessagesAreLeft) {
    const HostComm world = test::world();
    const auto channel = test::make_channel(world, test::neighbours(world), {.most_waiting = 3});
    constexpr int messages = 20;
    std::future<void> few;
    if (world.rank() == 0 && world.size() > 1) {
        for (int i = 0; i < messages; ++i)
            channel->start_send(1, {at::full({2}, i)});
        channel->wait_for_sends(1, messages);
        channel->wait_for_sends(1, messages - 3);
        few = std::async(std::launch::async, [&] { channel->wait_for_sends(1, 5); });
        EXPECT_EQ(few.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    }
    world.barrier();
    if (world.rank() == 1) {
        for (int i = 0; i < messages; ++i)
            EXPECT_EQ(channel->receive(0).at(0)[0].item<int>(), i);
    }
    if (few.valid())
        few.get();
    channel->wait_for_sends();
}

// In each round the ranks come at unlike times; what they send is known from the seed.
TEST(PeerChannelTest, RandomDelaysBesideAllReducesHoldNothingUp) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, others(world), small_pieces);
    const auto communicator = make_mpi_communicator(world, ThreadSupport::multiple, {}, {});
    std::mt19937 delays(static_cast<unsigned>(world.rank()) + 1), shared(7);
    const auto delay = [&] { std::this_thread::sleep_for(delays() % 1000 * 1us); };

    for (int round = 0; round < 300; ++round) {
        const auto length = static_cast<std::int64_t>(shared() % 3000);
        const at::Tensor sum = at::full({length + 1}, 1.0F);
        const auto work = communicator->start_all_reduce_sum(sum);
        delay();
        for (const int peer : others(world))
            channel->start_send(peer, {at::full({length}, round + world.rank(), at::kInt)});
        delay();
        for (const int peer : others(world))
            expect_equal(channel->receive(peer), {at::full({length}, round + peer, at::kInt)});
        work->wait();
        EXPECT_EQ(sum[length].item<float>(), static_cast<float>(world.size()));
    }
}

// Without a limit all would lie with the receiver, which looks for none of them at first.
TEST(PeerChannelTest, ASenderDoesNotRunAheadOfTheReceiver) {
    const HostComm world = test::world();
    constexpr std::int64_t bytes = 200'000;
    const auto channel = make_channel(
        world, spokes(world), {.piece_bytes = 50'000, .most_sent = 2, .most_waiting = 3});
    constexpr int messages = 40;

    if (world.rank() != 0)
        for (int i = 0; i < messages; ++i)
            channel->start_send(0, {at::full({bytes}, i, at::kByte)});
    std::this_thread::sleep_for(300ms);
    const PeerChannel::Traffic early = channel->take_traffic();
    world.barrier();

    // Of the next one MPI may have taken short pieces.
    EXPECT_LE(early.bytes_sent, 4 * bytes);
    EXPECT_LE(early.bytes_received, 3 * bytes * (world.size() - 1));
    if (world.rank() == 0)
        for (int i = 0; i < messages; ++i)
            for (const int peer : spokes(world))
                expect_equal(channel->receive(peer), {at::full({bytes}, i, at::kByte)});
    channel->wait_for_sends();
    const PeerChannel::Traffic all = channel->take_traffic();
    const std::int64_t sum = messages * bytes;
    EXPECT_EQ(early.bytes_sent + all.bytes_sent, world.rank() == 0 ? 0 : sum);
    EXPECT_EQ(early.bytes_received + all.bytes_received,
              world.rank() == 0 ? sum * (world.size() - 1) : 0);
}

TEST(PeerChannelTest, TrafficTellsTheTimeOfWaiting) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, spokes(world));
    world.barrier();

    // Rank 0 comes late.
    if (world.rank() == 0)
        std::this_thread::sleep_for(100ms);
    for (const int peer : spokes(world))
        channel->start_send(peer, {at::ones({10})});
    for (const int peer : spokes(world))
        channel->receive(peer);

    const double waited_ms = channel->take_traffic().waited_ms;
    EXPECT_GE(waited_ms, world.rank() == 0 ? 0 : 50);
    EXPECT_EQ(channel->take_traffic().waited_ms, 0);
}

TEST(PeerChannelTest, WhatHasLeftIsNotKept) {
    const HostComm world = test::world();
    const auto channel = make_channel(world, spokes(world), {.most_waiting = 1});
    const at::Tensor values = at::ones({1 << 20}).requires_grad_();

    if (world.rank() != 0) {
        channel->start_send(0, {values});
        channel->start_send(0, {values});
        EXPECT_GT(values.storage().use_count(), 1);
    }
    world.barrier();
    if (world.rank() == 0)
        for (const int peer : spokes(world)) {
            channel->receive(peer);
            channel->receive(peer);
        }
    channel->wait_for_sends();

    EXPECT_EQ(values.storage().use_count(), 1);
}

}  // namespace
}  // namespace hetseq
