#include "comm/host/memory_limits.hpp"

#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::IsEmpty;

// A folder that stands for the root of a host's /proc and /sys.
class MemoryLimitsTest : public testing::Test {
protected:
    MemoryLimitsTest() { fs::create_directories(root_); }
    ~MemoryLimitsTest() override { fs::remove_all(root_); }

    void write(const fs::path& file, const std::string& text) const {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream{root_ / file} << text << '\n';
    }
    // The limits of a process that is in `group`.
    std::vector<MemoryLimit> limits_in(const std::string& group) const {
        write("proc/self/cgroup", group);
        return memory_limits(root_);
    }

    fs::path root_ =
        fs::temp_directory_path() / ("hetseq-memory-limits-" + std::to_string(getpid()));
};

std::vector<std::int64_t> mb_of(const std::vector<MemoryLimit>& limits) {
    std::vector<std::int64_t> mb;
    for (const MemoryLimit& limit : limits)
        mb.push_back(limit.mb);
    return mb;
}

TEST_F(MemoryLimitsTest, WithoutGroupsThereIsNone) {
    EXPECT_THAT(memory_limits(root_), IsEmpty());
}

TEST_F(MemoryLimitsTest, Version2sLimitsOnTheWayUpAreFound) {
    write("sys/fs/cgroup/cgroup.controllers", "memory");
    write("sys/fs/cgroup/job/memory.max", "4294967296");
    write("sys/fs/cgroup/job/step/memory.max", "max");
    write("sys/fs/cgroup/job/step/task/memory.max", "1073741824");

    EXPECT_THAT(mb_of(limits_in("0::/job/step/task")), ElementsAre(1024, 4096));
    EXPECT_THAT(mb_of(limits_in("0::/job/step")), ElementsAre(4096));
    EXPECT_THAT(mb_of(limits_in("0::/")), IsEmpty());
}

TEST_F(MemoryLimitsTest, Version1sLimitsAreFoundAndItsGreatestNumberIsNone) {
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648");

    EXPECT_THAT(mb_of(limits_in("4:memory:/job\n0::/")), ElementsAre(2048));
}

// Two containers see their groups as "/", and one group may be seen by two paths.
TEST_F(MemoryLimitsTest, GroupsAreOneWhereTheirFolderIs) {
    write("sys/fs/cgroup/cgroup.controllers", "memory");
    write("sys/fs/cgroup/job/a/memory.max", "1073741824");
    write("sys/fs/cgroup/job/b/memory.max", "1073741824");
    fs::create_directory_symlink(root_ / "sys/fs/cgroup/job/a", root_ / "sys/fs/cgroup/seen");

    const auto a = limits_in("0::/job/a");

    EXPECT_EQ(limits_in("0::/seen"), a);
    EXPECT_NE(limits_in("0::/job/b"), a);
}

// By rank, on a host with 8192 MiB.
std::vector<std::int64_t> divided(const std::vector<std::vector<MemoryLimit>>& limits) {
    std::vector<std::int64_t> memory;
    for (std::size_t rank = 0; rank < limits.size(); ++rank)
        memory.push_back(divide_memory(8192, limits, rank));
    return memory;
}

TEST(DivideMemoryTest, WithoutLimitsTheHostsMemoryIsDivided) {
    EXPECT_THAT(divided({{}}), ElementsAre(8192));
    EXPECT_THAT(divided({{}, {}, {}, {}}), ElementsAre(2048, 2048, 2048, 2048));
}

TEST(DivideMemoryTest, ARankAloneInItsGroupHasAllOfItsLimit) {
    EXPECT_THAT(divided({{{"a", 1024}}, {{"b", 3072}}}), ElementsAre(1024, 3072));
}

TEST(DivideMemoryTest, ALimitAboveTheHostsPartDoesNotRaiseIt) {
    EXPECT_THAT(divided({{{"a", 6144}}, {{"b", 1024}}}), ElementsAre(4096, 1024));
}

TEST(DivideMemoryTest, RanksOfOneGroupDivideItsLimit) {
    EXPECT_THAT(divided({{{"a", 3072}}, {{"a", 3072}}, {{"a", 3072}}, {}}),
                ElementsAre(1024, 1024, 1024, 2048));
}

TEST(DivideMemoryTest, AGroupAboveOthersLimitsThemTogether) {
    EXPECT_THAT(divided({{{"a", 512}, {"job", 2048}}, {{"b", 4096}, {"job", 2048}}}),
                ElementsAre(512, 1024));
    EXPECT_THAT(divided({{{"a", 2048}, {"job", 4096}},
                         {{"a", 2048}, {"job", 4096}},
                         {{"b", 2048}, {"job", 4096}},
                         {{"job", 4096}}}),
                ElementsAre(1024, 1024, 1024, 1024));
}

}  // namespace
}  // namespace hetseq
