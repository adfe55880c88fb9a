// A channel between ranks of unlike devices, over the stand-ins.
#include <chrono>
#include <thread>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "hetseq/comm/mpi/peer_channel.hpp"

#include "comm/mixed/layouts.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using test::Layout;

class PeerChannelDevicesTest : public test::LayoutTest {
protected:
    std::vector<int> others() const {
        std::vector<int> ranks;
        for (int rank = 0; rank < world_.size(); ++rank)
            if (rank != world_.rank())
                ranks.push_back(rank);
        return ranks;
    }
    std::unique_ptr<PeerChannel> make_channel(const Layout& layout) {
        current_.reset_device(device(layout));
        return std::make_unique<PeerChannel>(
            world_,
            others(),
            device(layout),
            ThreadSupport::multiple,
            PeerChannel::Options{.piece_bytes = 10'000, .most_sent = 2, .deadline = 20s});
    }
    // Written late, by the work that the current stream was asked for.
    at::Tensor written_late(at::Device device, float value) {
        const at::Tensor tensor = at::empty({10'000}, at::TensorOptions(at::kFloat).device(device));
        auto* const data = tensor.mutable_data_ptr<float>();
        const auto fill = [data, value] {
            std::this_thread::sleep_for(2ms);
            std::fill_n(data, 10'000, value);
        };
        if (tensor.is_cuda())
            stand_in::launch(c10::cuda::getCurrentCUDAStream(device.index()).stream(),
                             "fill",
                             {stand_in::writes(data, 10'000)},
                             fill);
        else
            fill();
        return tensor;
    }
};

TEST_P(PeerChannelDevicesTest, WhatTheStreamWasAskedForIsSent) {
    const auto channel = make_channel(GetParam());

    for (int round = 0; round < 5; ++round) {
        for (const int peer : others()) {
            const auto value = static_cast<float>(10 * world_.rank() + round);
            channel->start_send(peer, {written_late(device(GetParam()), value)});
        }
        for (const int peer : others()) {
            const at::Tensor received = channel->receive(peer).at(0);
            EXPECT_EQ(received.device(), device(GetParam()));
            const at::Tensor after = received + 1;
            const auto value = static_cast<float>(10 * peer + round);
            EXPECT_TRUE(after.cpu().equal(at::full({10'000}, value + 1)));
        }
    }
    channel->wait_for_sends();
}

// The memory may be given out again, and written, as soon as the send was started.
TEST_P(PeerChannelDevicesTest, ASentTensorMayChangeOnTheStreamOfAGpu) {
    const auto channel = make_channel(GetParam());
    const at::Tensor tensor = written_late(device(GetParam()), 1.0F);

    for (const int peer : others())
        channel->start_send(peer, {tensor});
    if (tensor.is_cuda())
        tensor.add_(1);

    for (const int peer : others())
        EXPECT_TRUE(channel->receive(peer).at(0).cpu().equal(at::ones({10'000})));
    channel->wait_for_sends();
}

TEST_P(PeerChannelDevicesTest, AllKindsOfTensorsCrossDevices) {
    const auto channel = make_channel(GetParam());
    const at::Tensor table = at::arange(600, at::kFloat).reshape({20, 30});
    const at::Tensor own = table.to(device(GetParam()));

    for (const int peer : others())
        channel->start_send(peer,
                            {own.t(),
                             own.to(at::kHalf).requires_grad_(),
                             own.to(at::kLong)[3],
                             at::Tensor{},
                             own.slice(0, 0, 0)});

    for (const int peer : others()) {
        const std::vector<at::Tensor> received = channel->receive(peer);
        ASSERT_EQ(received.size(), 5U);
        EXPECT_TRUE(received[0].cpu().equal(table.t()));
        EXPECT_TRUE(received[1].requires_grad());
        EXPECT_TRUE(received[1].detach().cpu().equal(table.to(at::kHalf)));
        EXPECT_TRUE(received[2].cpu().equal(table.to(at::kLong)[3]));
        EXPECT_FALSE(received[3].defined());
        EXPECT_EQ(received[4].sizes(), (std::vector<std::int64_t>{0, 30}));
        EXPECT_EQ(received[4].device(), device(GetParam()));
    }
    channel->wait_for_sends();
}

TEST_P(PeerChannelDevicesTest, AnUnfinishedMessageIsAbandonedWithAnException) {
    try {
        const auto channel = make_channel(GetParam());
        for (const int peer : others())
            for (int i = 0; i < 20; ++i)
                channel->start_send(peer, {written_late(device(GetParam()), 1.0F)});
        throw std::runtime_error("what ends this rank");
    } catch (const std::runtime_error&) {
    }
    world_.barrier();
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         PeerChannelDevicesTest,
                         testing::ValuesIn(test::all_layouts()),
                         test::name_of_layout);

}  // namespace
}  // namespace hetseq
