#include "comm/roll_call.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <mpi.h>

#include <gtest/gtest.h>

#include "hetseq/comm/mpi/mpi_handle.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;

// What rank 0 says of those missing once it is down to the last rank; empty if it never is.
std::string seen_missing(const RollCall& roll_call, const std::string& expected) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < deadline) {
        if (roll_call.missing() == expected)
            return expected;
        std::this_thread::sleep_for(1ms);
    }
    return "";
}

TEST(RollCallTest, RankZeroNamesTheRankThatIsLate) {
    const HostComm world = test::world();
    if (world.size() == 1 || test::environment().thread_support() != ThreadSupport::multiple)
        GTEST_SKIP() << "nobody to wait for, or no threads";
    const HostComm aside = world.duplicate();
    const int last = world.size() - 1;
    const std::string late = "rank " + std::to_string(last) + " has not come";
    RollCall roll_call{mpi_handle(world)};
    std::string seen;
    std::thread watcher([&] {
        if (world.rank() != 0)
            return;
        seen = seen_missing(roll_call, late);
        MPI_Send(nullptr, 0, MPI_BYTE, last, 0, mpi_handle(aside));
    });

    if (world.rank() == last)
        MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, mpi_handle(aside), MPI_STATUS_IGNORE);
    roll_call.meet();
    watcher.join();

    EXPECT_EQ(roll_call.missing(), "");
    if (world.rank() == 0) {
        EXPECT_EQ(seen, late);
    }
}

}  // namespace
}  // namespace hetseq
