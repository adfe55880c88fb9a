#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"

namespace hetseq::test {

inline std::vector<int> others(const HostComm& world) {
    std::vector<int> ranks;
    for (int rank = 0; rank < world.size(); ++rank)
        if (rank != world.rank())
            ranks.push_back(rank);
    return ranks;
}

/// The stages before and behind.
inline std::vector<int> neighbours(const HostComm& world) {
    std::vector<int> ranks;
    for (const int rank : {world.rank() - 1, world.rank() + 1})
        if (rank >= 0 && rank < world.size())
            ranks.push_back(rank);
    return ranks;
}

/// Rank 0 with each of the others.
inline std::vector<int> spokes(const HostComm& world) {
    return world.rank() == 0 ? others(world) : std::vector<int>{0};
}

inline std::unique_ptr<PeerChannel> make_channel(const HostComm& world,
                                                 const std::vector<int>& peers,
                                                 const PeerChannel::Options& options = {}) {
    return std::make_unique<PeerChannel>(world, peers, at::kCPU, ThreadSupport::multiple, options);
}

inline constexpr PeerChannel::Options small_pieces{.piece_bytes = 1000, .most_sent = 2};

inline void expect_equal(const std::vector<at::Tensor>& tensors,
                         const std::vector<at::Tensor>& expected) {
    ASSERT_EQ(tensors.size(), expected.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        ASSERT_EQ(tensors[i].defined(), expected[i].defined());
        if (!expected[i].defined())
            continue;
        EXPECT_EQ(tensors[i].scalar_type(), expected[i].scalar_type());
        EXPECT_EQ(tensors[i].sizes(), expected[i].sizes());
        EXPECT_TRUE(at::equal(tensors[i], expected[i])) << "tensor " << i;
    }
}

/// The text of the CommError that `call` throws.
inline std::string comm_error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const CommError& error) {
        return error.what();
    }
    return "nothing";
}

}  // namespace hetseq::test
