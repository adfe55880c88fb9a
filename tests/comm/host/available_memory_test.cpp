#include "hetseq/comm/host/available_memory.hpp"

#include <fstream>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

namespace fs = std::filesystem;

// A folder that stands for the root of a host's /proc and /sys.
class AvailableMemoryTest : public testing::Test {
protected:
    ~AvailableMemoryTest() override { fs::remove_all(root_); }

    void write(const fs::path& file, const std::string& text) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream{root_ / file} << text << '\n';
    }

    fs::path root_ =
        fs::temp_directory_path() / ("hetseq-available-memory-" + std::to_string(getpid()));
};

TEST_F(AvailableMemoryTest, IsWhatTheKernelSaysAndNoMoreThanAControlGroupHas) {
    write("proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1024 kB\nMemAvailable:    4194304 kB");

    const std::int64_t of_host = available_memory_mb(root_);
    write("proc/self/cgroup", "0::/job");
    write("sys/fs/cgroup/cgroup.controllers", "memory");
    write("sys/fs/cgroup/job/memory.max", std::to_string(std::int64_t{100} << 20));
    const std::int64_t of_group = available_memory_mb(root_);

    EXPECT_EQ(of_host, 4096);
    EXPECT_EQ(of_group, 100);
}

TEST_F(AvailableMemoryTest, IsMoreThanNothingHere) {
    EXPECT_GT(available_memory_mb(), 0);
}

}  // namespace
}  // namespace hetseq
