#include "comm/host/cpu_resources.hpp"

#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include <sched.h>

namespace hetseq {
namespace {

namespace fs = std::filesystem;

// A folder that stands for the root of a host's /proc and /sys.
class CpuResourcesTest : public testing::Test {
protected:
    CpuResourcesTest() { fs::create_directories(root_); }
    ~CpuResourcesTest() override { fs::remove_all(root_); }

    void write(const fs::path& file, const std::string& text) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream{root_ / file} << text << '\n';
    }

    fs::path root_ =
        fs::temp_directory_path() / ("hetseq-cpu-resources-" + std::to_string(getpid()));
};

TEST_F(CpuResourcesTest, Version2sTightestQuotaOnTheWayUpCounts) {
    write("proc/self/cgroup", "0::/slurm/job_7/step_0");
    write("sys/fs/cgroup/cgroup.controllers", "cpu memory");
    write("sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000");
    write("sys/fs/cgroup/slurm/job_7/cpu.max", "150000 100000");
    write("sys/fs/cgroup/slurm/cpu.max", "800000 100000");

    EXPECT_EQ(cpu_quota(root_), 1.5);
}

TEST_F(CpuResourcesTest, Version1sQuotaIsRead) {
    write("proc/self/cgroup", "3:cpuset:/\n4:cpu,cpuacct:/h2");
    write("sys/fs/cgroup/cpu/h2/cpu.cfs_quota_us", "25000");
    write("sys/fs/cgroup/cpu/h2/cpu.cfs_period_us", "100000");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");

    EXPECT_EQ(cpu_quota(root_), 0.25);
}

TEST_F(CpuResourcesTest, AGroupThatOnlyTheHostSeesFallsBackToTheMount) {
    write("proc/self/cgroup", "0::/system.slice/docker-1234.scope");
    write("sys/fs/cgroup/cgroup.controllers", "cpu");
    write("sys/fs/cgroup/cpu.max", "200000 100000");

    EXPECT_EQ(cpu_quota(root_), 2.0);
}

TEST_F(CpuResourcesTest, TheGroupsCpuSetAndQuotaLimitItsCores) {
    write("proc/self/cgroup", "0::/job_7");
    write("sys/fs/cgroup/cgroup.controllers", "cpu cpuset");
    write("sys/devices/system/cpu/online", "0-127");
    EXPECT_EQ(group_cores(root_), 128);
    write("sys/fs/cgroup/job_7/cpuset.cpus.effective", "0-7,64,66-67");
    EXPECT_EQ(group_cores(root_), 11);
    write("sys/fs/cgroup/job_7/cpu.max", "350000 100000");
    EXPECT_EQ(group_cores(root_), 4);
}

TEST_F(CpuResourcesTest, WithoutGroupsThereIsNoQuota) {
    EXPECT_EQ(cpu_quota(root_), std::nullopt);
}

TEST_F(CpuResourcesTest, TheHostsMemoryIsTheKernelsTotal) {
    write("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB");

    EXPECT_EQ(host_memory_mb(root_), 8192);
}

TEST_F(CpuResourcesTest, TheProcessorsNameIsTheKernels) {
    write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t: fpu");

    EXPECT_EQ(cpu_model_name(root_), "Some CPU @ 2 GHz");
}

TEST(BoundCpusTest, FollowTheAffinityMask) {
    const auto before = bound_cpus();
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(before.back(), &one);

    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const auto bound = bound_cpus();
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);

    EXPECT_EQ(static_cast<int>(before.size()), CPU_COUNT(&all));
    EXPECT_EQ(bound, std::vector<int>{before.back()});
}

}  // namespace
}  // namespace hetseq
