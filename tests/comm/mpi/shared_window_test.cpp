#include "hetseq/comm/mpi/shared_window.hpp"

#include <algorithm>
#include <cstdint>

#include <sys/statvfs.h>

#include <gtest/gtest.h>

#include "test_world.hpp"

namespace hetseq {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20;

TEST(SharedWindowTest, StartsZeroed) {
    const HostComm node = test::world().split_by_host();

    const SharedWindow window{node, 3 * megabyte + 5};

    ASSERT_EQ(window.bytes().size(), 3 * megabyte + 5);
    EXPECT_TRUE(std::all_of(window.bytes().begin(), window.bytes().end(), [](std::byte b) {
        return b == std::byte{0};
    }));
}

TEST(SharedWindowTest, RanksOfOneHostSeeEachOthersWrites) {
    const HostComm node = test::world().split_by_host();
    SharedWindow window{node, megabyte};
    ASSERT_EQ(window.shared(), node.size() > 1);
    const auto rank = static_cast<std::size_t>(node.rank());

    window.bytes()[rank * 100] = static_cast<std::byte>(rank + 1);
    node.barrier();

    for (std::size_t r = 0; r < static_cast<std::size_t>(node.size()); ++r)
        EXPECT_EQ(window.bytes()[r * 100], static_cast<std::byte>(r + 1));
    node.barrier();
}

TEST(SharedWindowTest, ASingleRankHasPrivateMemory) {
    const SharedWindow window{HostComm::serial(), megabyte};

    window.bytes().back() = std::byte{9};

    EXPECT_FALSE(window.shared());
    EXPECT_EQ(window.bytes().back(), std::byte{9});
}

TEST(SharedWindowTest, MoreThanTheBackingStoreHoldsIsPrivate) {
    struct statvfs store {};
    ASSERT_EQ(statvfs("/dev/shm", &store), 0);
    const std::size_t too_much = store.f_bavail * store.f_frsize + megabyte;
    const HostComm node = test::world().split_by_host();
    SharedWindow window{node, too_much};

    window.bytes()[7] = static_cast<std::byte>(node.rank() + 1);
    node.barrier();

    EXPECT_FALSE(window.shared());
    EXPECT_EQ(window.bytes().size(), too_much);
    EXPECT_EQ(window.bytes()[7], static_cast<std::byte>(node.rank() + 1));
}

TEST(SharedWindowTest, IsAlignedForTensors) {
    const HostComm node = test::world().split_by_host();

    const SharedWindow window{node, megabyte};

    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window.bytes().data()) % 64, 0U);
}

TEST(SharedWindowTest, AnEmptyWindowIsAllowedAndMoves) {
    const HostComm node = test::world().split_by_host();

    SharedWindow window{node, 0};
    window = SharedWindow{node, 64};

    EXPECT_EQ(window.bytes().size(), 64U);
}

}  // namespace
}  // namespace hetseq
