#include "hetseq/comm/host/topology.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

namespace fs = std::filesystem;

// Where control groups of memory are made, and what their limit is called.
struct MemoryGroups {
    fs::path folder = "/sys/fs/cgroup/memory";
    std::string limit = "memory.limit_in_bytes";
};

MemoryGroups memory_groups() {
    return fs::exists(MemoryGroups{}.folder / "cgroup.procs")
               ? MemoryGroups{}
               : MemoryGroups{"/sys/fs/cgroup", "memory.max"};
}

// A control group of memory while it lives.
class MemoryGroup {
public:
    MemoryGroup(const std::string& name, int mb) {
        std::error_code error;
        if (fs::create_directory(folder_ = memory_groups().folder / name, error))
            std::ofstream{folder_ / memory_groups().limit} << mb << "M";
    }
    ~MemoryGroup() {
        std::error_code error;
        fs::remove(folder_, error);  // the files in it are not to be removed
    }
    MemoryGroup(const MemoryGroup&) = delete;
    MemoryGroup& operator=(const MemoryGroup&) = delete;

    bool limits() const { return fs::exists(folder_ / memory_groups().limit); }
    const fs::path& folder() const { return folder_; }

private:
    fs::path folder_;
};

// The group of this process, without the leading "/".
fs::path current_group() {
    std::ifstream file{"/proc/self/cgroup"};
    const bool is_version_1 = memory_groups().limit != "memory.max";
    for (std::string line; std::getline(file, line);)
        if (line.find(is_version_1 ? ":memory:/" : "0::/") != line.npos)
            return line.substr(line.find(":/") + 2);
    return {};
}

void enter(const fs::path& group) {
    std::ofstream{group / "cgroup.procs"} << ::getpid();
}

// What each rank is told of its memory while it is in the group `name` with a limit of `mb`; empty
// where such groups cannot be made.
std::vector<std::int64_t> memory_in_group(const HostComm& world, const std::string& name, int mb) {
    const MemoryGroup group{name, mb};
    const bool everywhere = world.all_reduce(std::int64_t{group.limits()}, ReduceOp::min) == 1;
    if (!everywhere)
        return {};
    const fs::path before = memory_groups().folder / current_group();
    enter(group.folder());
    std::vector<std::int64_t> memory;
    for (const RankInfo& info : discover_topology(world, DeviceChoice::cpu).ranks)
        memory.push_back(info.memory_mb);
    enter(before);
    world.barrier();
    return memory;
}

constexpr const char* no_groups = "no control groups of memory can be made here";

TEST(TopologyTest, ARankWithAControlGroupOfItsOwnMayUseAllOfItsLimit) {
    const HostComm world = test::world();

    const auto memory =
        memory_in_group(world, "hetseq-topology-" + std::to_string(::getpid()), 256 + world.rank());
    if (memory.empty())
        GTEST_SKIP() << no_groups;

    for (int rank = 0; rank < world.size(); ++rank)
        EXPECT_EQ(memory[static_cast<std::size_t>(rank)], 256 + rank);
}

TEST(TopologyTest, RanksInOneControlGroupDivideItsLimit) {
    const HostComm world = test::world();
    const std::int64_t first = world.broadcast(std::int64_t{::getpid()}, 0);

    const auto memory = memory_in_group(world, "hetseq-topology-" + std::to_string(first), 512);
    if (memory.empty())
        GTEST_SKIP() << no_groups;

    for (const std::int64_t mb : memory)
        EXPECT_EQ(mb, 512 / world.size());
}

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

// Where others were left out, devices are free that were not, and local ranks have other numbers.
TEST(TopologyTest, ARankKeepsItsDeviceWhereOthersAreLeftOut) {
    const HostComm world = test::world();
    RankInfo before = discover_topology(world, DeviceChoice::cpu).rank(world.rank());
    EXPECT_EQ(before.mark, before.host + " cpu " + std::to_string(world.rank()));
    const bool has_gpu = world.rank() == world.size() - 1;
    if (has_gpu) {
        before.device = "cuda:3";
        before.device_name = "V100";
        before.device_uuid = before.mark = "GPU-3";
        before.memory_mb = 16'000;
    }

    const HostComm others = world.split(world.rank() == 0 ? 0 : 1);
    const Topology topology = discover_topology(others, DeviceChoice::automatic, &before);

    const RankInfo& own = topology.rank(others.rank());
    EXPECT_EQ(own.mark, before.mark);
    EXPECT_EQ(own.device, before.device);
    EXPECT_EQ(own.device_name, before.device_name);
    EXPECT_EQ(own.device_uuid, before.device_uuid);
    EXPECT_EQ(own.local_rank, others.rank());
    EXPECT_EQ(own.memory_mb == 16'000, has_gpu);
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
