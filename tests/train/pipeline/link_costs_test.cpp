#include "hetseq/train/pipeline/link_costs.hpp"

#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"

#include "test_world.hpp"

namespace hetseq::test {
namespace {

TEST(OpponentTest, EachTwoRanksMeetOnceAndAgree) {
    for (int ranks = 1; ranks <= 12; ++ranks) {
        SCOPED_TRACE(ranks);
        std::set<std::pair<int, int>> met;
        const int rounds = ranks + ranks % 2 - 1;
        for (int round = 0; round < rounds; ++round)
            for (int rank = 0; rank < ranks; ++rank) {
                const int other = opponent(rank, ranks, round);
                if (other < 0)
                    continue;
                ASSERT_LT(other, ranks);
                EXPECT_NE(other, rank);
                EXPECT_EQ(opponent(other, ranks, round), rank);
                EXPECT_TRUE(met.insert({rank, other}).second);
            }
        EXPECT_EQ(met.size(), static_cast<std::size_t>(ranks * (ranks - 1)));
    }
}

TEST(MeasureLinksTest, AllRanksHaveTheSamePositiveNumbers) {
    const HostComm world = test::world();
    std::vector<int> others;
    for (int rank = 0; rank < world.size(); ++rank)
        if (rank != world.rank())
            others.push_back(rank);
    PeerChannel channel(world, others, at::kCPU, environment().thread_support(), {});

    const auto links = measure_links(world, channel, at::kCPU);

    ASSERT_EQ(links.size(), static_cast<std::size_t>(world.size()));
    for (std::size_t from = 0; from < links.size(); ++from)
        for (std::size_t to = 0; to < links.size(); ++to) {
            const LinkCost& cost = links[from][to];
            EXPECT_EQ(cost.latency_ms > 0, from != to);
            EXPECT_GE(cost.ms_per_mb, 0);
            EXPECT_EQ(world.broadcast(std::to_string(cost.latency_ms), 0),
                      std::to_string(cost.latency_ms));
            EXPECT_EQ(cost.latency_ms, links[to][from].latency_ms);
        }
}

}  // namespace
}  // namespace hetseq::test
