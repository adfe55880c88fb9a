#include <gtest/gtest.h>

#include "hetseq/comm/host/topology.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

RankInfo gpu_rank(int rank, const std::string& host, int local_rank, const std::string& name) {
    RankInfo info;
    info.rank = rank;
    info.host = host;
    info.local_rank = local_rank;
    info.device = "cuda:" + std::to_string(local_rank);
    info.device_name = name;
    info.device_uuid = "GPU-" + host + "-" + std::to_string(local_rank);
    info.cores = info.own_cores = 8;
    info.memory_mb = 16384;
    return info;
}

Topology two_like_hosts_and_another() {
    Topology topology;
    topology.ranks = {gpu_rank(0, "n01", 0, "V100"),
                      gpu_rank(1, "n01", 1, "V100"),
                      gpu_rank(2, "n02", 0, "V100"),
                      gpu_rank(3, "n02", 1, "V100"),
                      gpu_rank(4, "old", 0, "P100")};
    topology.hosts = 3;
    return topology;
}

TEST(TopologyTableTest, LikeHostsShareALineAndUnlikeOnesStandApart) {
    EXPECT_EQ(two_like_hosts_and_another().table(),
              "host      ranks  device    memory each  cores each\n"
              "n[01-02]  0-3    2 x V100  16 GiB       8\n"
              "old       4      P100      16 GiB       8\n");
}

TEST(TopologyTableTest, DevicesThatDifferWithinAHostStandApart) {
    Topology topology;
    topology.ranks = {gpu_rank(0, "mix", 0, "A100"), gpu_rank(1, "mix", 1, "T4")};
    topology.ranks[1].own_cores = 2;
    topology.ranks[1].memory_mb = 9000;
    topology.hosts = 1;

    EXPECT_EQ(topology.table(),
              "host  ranks  device  memory each  cores each\n"
              "mix   0      A100    16 GiB       8\n"
              "mix   1      T4      9000 MiB     2 (of 8 shared)\n");
}

TEST(TopologyTableTest, RanksThatShareAGpuAreNamed) {
    Topology topology = two_like_hosts_and_another();
    topology.ranks[1].device_uuid = topology.ranks[0].device_uuid;

    EXPECT_EQ(topology.shared_devices(), (std::vector<std::vector<int>>{{0, 1}}));
    EXPECT_THAT(topology.table(), testing::EndsWith("ranks 0, 1 share one V100\n"));
}

TEST(TopologyTableTest, CountsTheRanksOfAHost) {
    const Topology topology = two_like_hosts_and_another();

    EXPECT_EQ(topology.ranks_on_host_of(3), 2);
    EXPECT_EQ(topology.ranks_on_host_of(4), 1);
    EXPECT_TRUE(topology.shared_devices().empty());
}

}  // namespace
}  // namespace hetseq
