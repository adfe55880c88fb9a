#include "hetseq/comm/host_comm.hpp"

#include <chrono>
#include <numeric>
#include <thread>

#include <mpi.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "hetseq/comm/mpi/mpi_handle.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;

// CPU time of the calling thread [s].
double thread_cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(HostCommTest, AllReduceMatchesTheFormula) {
    const HostComm world = test::world();
    const double n = world.size();

    const double sum = world.all_reduce(double(world.rank()), ReduceOp::sum);
    const double largest = world.all_reduce(double(world.rank()), ReduceOp::max);
    const std::int64_t smallest = world.all_reduce(std::int64_t{7} + world.rank(), ReduceOp::min);

    EXPECT_EQ(sum, n * (n - 1) / 2);
    EXPECT_EQ(largest, n - 1);
    EXPECT_EQ(smallest, 7);
}

TEST(HostCommTest, AllReduceOfASpanIsElementByElement) {
    const HostComm world = test::world();
    std::vector<std::int64_t> values{1, world.rank(), std::int64_t{1} << 40};

    world.all_reduce(values, ReduceOp::sum);

    const std::int64_t n = world.size();
    EXPECT_EQ(values, (std::vector<std::int64_t>{n, n * (n - 1) / 2, n << 40}));
}

TEST(HostCommTest, GathersValuesInRankOrder) {
    const HostComm world = test::world();

    const auto squares = world.all_gather(std::int64_t{world.rank()} * world.rank());
    const auto halves = world.all_gather(world.rank() / 2.0);

    for (std::size_t r = 0; r < squares.size(); ++r) {
        EXPECT_EQ(squares[r], static_cast<std::int64_t>(r * r));
        EXPECT_EQ(halves[r], double(r) / 2.0);
    }
    EXPECT_EQ(squares.size(), std::size_t(world.size()));
}

TEST(HostCommTest, GathersStringsOfUnequalLengthEmptyAndBinaryOnes) {
    const HostComm world = test::world();
    const auto of_rank = [](int rank) {
        return rank % 2 == 0 ? std::string(std::size_t(rank) * 1000, char('a' + rank))
                             : std::string("x\0y\n", 4);
    };

    const auto texts = world.all_gather(of_rank(world.rank()));

    ASSERT_EQ(texts.size(), std::size_t(world.size()));
    for (int r = 0; r < world.size(); ++r)
        EXPECT_EQ(texts[std::size_t(r)], of_rank(r));
}

// Those of 40 MB go in more than one piece, whatever the number of ranks above one.
TEST(HostCommTest, OneRankGathersStringsOfAnyLength) {
    const HostComm world = test::world();
    const auto of_rank = [](int rank) {
        std::string text(rank % 2 == 0 ? std::size_t{40} << 20 : std::size_t(rank),
                         char('a' + rank));
        text.back() = '\0';
        return text;
    };
    const int root = world.size() - 1;

    const auto texts = world.gather(of_rank(world.rank()), root);
    const auto nothing = world.gather("", 0);

    ASSERT_EQ(texts.size(), std::size_t(world.rank() == root ? world.size() : 0));
    for (std::size_t r = 0; r < texts.size(); ++r)
        EXPECT_TRUE(texts[r] == of_rank(int(r)));
    EXPECT_EQ(nothing, std::vector<std::string>(std::size_t(world.rank() == 0 ? world.size() : 0)));
}

TEST(HostCommTest, BroadcastsFromEachRoot) {
    const HostComm world = test::world();

    for (int root = 0; root < world.size(); ++root) {
        const std::string text = world.broadcast(
            world.rank() == root ? "from " + std::to_string(root) : "not the root's", root);
        const std::int64_t number = world.broadcast(std::int64_t{100} * world.rank(), root);

        EXPECT_EQ(text, "from " + std::to_string(root));
        EXPECT_EQ(number, 100 * root);
    }
}

TEST(HostCommTest, SplitOrdersByKeyThenRank) {
    const HostComm world = test::world();

    const HostComm halves = world.split(world.rank() % 2);
    const HostComm reversed = world.split(0, -world.rank());

    EXPECT_EQ(halves.size(), (world.size() + 1 - world.rank() % 2) / 2);
    EXPECT_EQ(halves.rank(), world.rank() / 2);
    EXPECT_EQ(reversed.rank(), world.size() - 1 - world.rank());
}

TEST(HostCommTest, SplitByHostHoldsAllRanksOfThisHost) {
    const HostComm world = test::world();

    const HostComm node = world.split_by_host();

    EXPECT_EQ(node.size(), world.size());  // the test runs on one host
}

TEST(HostCommTest, MessagesOfADuplicateDoNotMeetTheOriginals) {
    const HostComm world = test::world();
    const HostComm other = world.duplicate();
    std::vector<double> in_world{1};
    std::vector<double> in_other{10};

    HostRequest first = world.start_all_reduce(in_world, ReduceOp::sum);
    other.all_reduce(in_other, ReduceOp::sum);
    first.wait();

    EXPECT_EQ(in_world[0], world.size());
    EXPECT_EQ(in_other[0], 10.0 * world.size());
}

TEST(HostCommTest, AStartedReductionRunsWhileTheRankWorks) {
    const HostComm world = test::world();
    std::vector<double> values(100);
    std::iota(values.begin(), values.end(), world.rank());

    HostRequest pending = world.start_all_reduce(values, ReduceOp::sum);
    while (!pending.test())
        std::this_thread::sleep_for(100us);

    const double n = world.size();
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(values[i], n * double(i) + n * (n - 1) / 2);
}

TEST(HostCommTest, DestroyingAPendingReductionCompletesIt) {
    const HostComm world = test::world();
    std::vector<double> values{2};

    { const HostRequest pending = world.start_all_reduce(values, ReduceOp::max); }

    EXPECT_EQ(values[0], 2);
    EXPECT_EQ(world.all_reduce(1.0, ReduceOp::sum), world.size());
}

TEST(HostCommTest, AWaitingRankLeavesItsCore) {
    const HostComm world = test::world();
    world.barrier();
    const auto start = std::chrono::steady_clock::now();
    const double cpu_before = thread_cpu_seconds();

    if (world.rank() == 0)
        std::this_thread::sleep_for(500ms);
    world.barrier();

    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    EXPECT_LE(thread_cpu_seconds() - cpu_before, 0.5 * wall.count());
}

TEST(HostCommTest, SerialCollectivesGiveTheOwnValue) {
    const HostComm serial = HostComm::serial();
    std::vector<double> values{3, 4};

    serial.barrier();
    serial.all_reduce(values, ReduceOp::sum);
    serial.start_all_reduce(values, ReduceOp::sum).wait();

    EXPECT_EQ(serial.size(), 1);
    EXPECT_EQ(values, (std::vector<double>{3, 4}));
    EXPECT_EQ(serial.all_gather(std::string("only")), std::vector<std::string>{"only"});
    EXPECT_EQ(serial.broadcast(std::string("own"), 0), "own");
    EXPECT_EQ(serial.split(3).size(), 1);
    EXPECT_EQ(serial.split_by_host().size(), 1);
    EXPECT_EQ(mpi_handle(serial), MPI_COMM_NULL);
}

TEST(HostCommTest, HandsOutItsHandle) {
    const HostComm world = test::world();

    int size = 0;
    MPI_Comm_size(mpi_handle(world), &size);

    EXPECT_EQ(size, world.size());
}

}  // namespace
}  // namespace hetseq
