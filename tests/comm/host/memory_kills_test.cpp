#include "hetseq/comm/host/memory_kills.hpp"

#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

namespace fs = std::filesystem;

// A folder that stands for the root of a host's /proc and /sys.
class MemoryKillsTest : public testing::Test {
protected:
    MemoryKillsTest() { fs::create_directories(root_); }
    ~MemoryKillsTest() override { fs::remove_all(root_); }

    void write(const fs::path& file, const std::string& text) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream{root_ / file} << text << '\n';
    }

    fs::path root_ =
        fs::temp_directory_path() / ("hetseq-memory-kills-" + std::to_string(getpid()));
};

TEST_F(MemoryKillsTest, RisesWithTheHostsCount) {
    EXPECT_EQ(memory_kills(root_), 0);
    write("proc/vmstat", "nr_free_pages 99\noom_kill 2\ndrop_pagecache 0");
    EXPECT_EQ(memory_kills(root_), 2);
}

TEST_F(MemoryKillsTest, RisesWithThatOfTheControlGroup) {
    write("proc/self/cgroup", "0::/slurm/job_7");
    write("sys/fs/cgroup/cgroup.controllers", "cpu memory");
    write("sys/fs/cgroup/slurm/job_7/memory.events", "low 0\noom 1\noom_kill 1");
    const std::int64_t before = memory_kills(root_);
    write("sys/fs/cgroup/slurm/job_7/memory.events", "low 0\noom 2\noom_kill 2");
    EXPECT_GT(memory_kills(root_), before);
}

TEST_F(MemoryKillsTest, KnowsVersion1) {
    write("proc/self/cgroup", "4:memory:/slurm/job_7");
    write("sys/fs/cgroup/memory/slurm/job_7/memory.oom_control",
          "oom_kill_disable 0\nunder_oom 0\noom_kill 5");
    EXPECT_EQ(memory_kills(root_), 5);
}

}  // namespace
}  // namespace hetseq
