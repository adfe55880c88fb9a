#include "hetseq/comm/host/topology.hpp"

#include <set>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

TEST(TopologyTest, OneHostHoldsAllRanksOfThisTest) {
    const HostComm world = test::world();
    char name[256] = "";
    gethostname(name, sizeof name - 1);

    const Topology topology = discover_topology(world, DeviceChoice::cpu);

    EXPECT_EQ(topology.hosts, 1);
    ASSERT_EQ(topology.ranks.size(), std::size_t(world.size()));
    for (int r = 0; r < world.size(); ++r) {
        EXPECT_EQ(topology.rank(r).rank, r);
        EXPECT_EQ(topology.rank(r).local_rank, r);
        EXPECT_EQ(topology.rank(r).host, name);
        EXPECT_EQ(topology.rank(r).device, "cpu");
        EXPECT_FALSE(topology.rank(r).device_name.empty());
        EXPECT_GT(topology.rank(r).memory_mb, 0);
    }
}

TEST(TopologyTest, IsTheSameOnAllRanks) {
    const HostComm world = test::world();

    const Topology topology = discover_topology(world, DeviceChoice::cpu);

    for (const std::string& table : world.all_gather(topology.table()))
        EXPECT_EQ(table, topology.table());
}

TEST(TopologyTest, RanksBoundToTheSameCpusDivideThem) {
    const HostComm world = test::world();

    const Topology topology = discover_topology(world, DeviceChoice::cpu);

    int owned = 0;
    int visible = 0;
    for (const RankInfo& info : topology.ranks) {
        EXPECT_GE(info.own_cores, 1);
        EXPECT_LE(info.own_cores, info.cores);
        owned += info.own_cores;
        visible = std::max(visible, info.cores);
    }
    EXPECT_LE(owned, std::max(visible, world.size()));
}

TEST(TopologyTest, ASingleProcessWithoutMpiHasAPlace) {
    const Topology topology = discover_topology(HostComm::serial(), DeviceChoice::cpu);

    EXPECT_EQ(topology.hosts, 1);
    EXPECT_EQ(topology.ranks.size(), 1U);
    EXPECT_EQ(topology.rank(0).own_cores, topology.rank(0).cores);
}

}  // namespace
}  // namespace hetseq
