#include "hetseq/train/pipeline/link_costs.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

MeasuredLinks measured_with(const std::vector<std::string>& hosts) {
    const HostComm world = test::world();
    std::vector<int> others;
    for (int rank = 0; rank < world.size(); ++rank)
        if (rank != world.rank())
            others.push_back(rank);
    PeerChannel channel(world, others, at::kCPU, environment().thread_support(), {});
    return measure_links(world, channel, at::kCPU, hosts);
}

void expect_links_of_all(const MeasuredLinks& measured) {
    const std::vector<std::vector<LinkCost>>& links = measured.between;
    const HostComm world = test::world();
    ASSERT_EQ(links.size(), static_cast<std::size_t>(world.size()));
    ASSERT_EQ(measured.cpu_ms_per_mb.size(), links.size());
    for (const double ms : measured.cpu_ms_per_mb)
        EXPECT_EQ(ms > 0, world.size() > 1);
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

TEST(MeasureLinksTest, AllRanksHaveTheSamePositiveNumbers) {
    std::vector<std::string> one_host, own_hosts;
    for (int rank = 0; rank < test::world().size(); ++rank) {
        one_host.push_back("a");
        own_hosts.push_back("h" + std::to_string(rank));
    }

    const auto on_one = measured_with(one_host);
    const auto on_own = measured_with(own_hosts);

    expect_links_of_all(on_one);
    expect_links_of_all(on_own);
}

TEST(MeasureLinksTest, RanksOfAHostHaveTheSameLinksToOtherHosts) {
    const std::size_t ranks = static_cast<std::size_t>(test::world().size());
    std::vector<std::string> hosts;
    for (std::size_t rank = 0; rank < ranks; ++rank)
        hosts.push_back(rank % 3 == 0 ? "a" : "b");

    const MeasuredLinks measured = measured_with(hosts);

    expect_links_of_all(measured);
    const std::vector<std::vector<LinkCost>>& links = measured.between;
    const auto [least, most] =
        std::minmax_element(measured.cpu_ms_per_mb.begin(), measured.cpu_ms_per_mb.end());
    EXPECT_LT(*most, 10 * *least) << "like ranks, each of which sends as much as it receives";
    for (std::size_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(measured.cpu_ms_per_mb[rank], measured.cpu_ms_per_mb[rank % 3 == 0 ? 0 : 1]);
    for (std::size_t from = 0; from < ranks; ++from)
        for (std::size_t to = 0; to < ranks; ++to)
            if (hosts[from] != hosts[to]) {
                EXPECT_EQ(links[from][to].latency_ms, links[0][1].latency_ms);
                EXPECT_EQ(links[from][to].ms_per_mb, links[0][1].ms_per_mb);
            }
}

}  // namespace
}  // namespace hetseq::test
