#include <chrono>
#include <cstring>
#include <thread>

#include <sys/resource.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "comm/communicators.hpp"
#include "comm/range_values.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::chrono_literals;

// Rank r's tensor of `count` elements: numbers of unlike size and sign, so that a wrong order of
// additions shows in the last bits.
at::Tensor values_of(int rank, std::int64_t count, at::ScalarType type) {
    return test::repeated(count, [&](const at::Tensor& i) {
        return (at::sin(i * (rank + 1) + 0.1) * at::exp2(at::remainder(i + rank, 24))).to(type);
    });
}

at::Tensor sum_in_fp64(int ranks, std::int64_t count, at::ScalarType type) {
    at::Tensor sum = at::zeros({count}, at::kDouble);
    for (int r = 0; r < ranks; ++r)
        sum += values_of(r, count, type).to(at::kDouble);
    return sum;
}

double largest_difference(const at::Tensor& tensor, const at::Tensor& expected) {
    if (tensor.numel() == 0)
        return 0;
    return (tensor.to(at::kDouble) - expected).abs().max().item<double>();
}

std::int64_t hash(const at::Tensor& tensor) {
    const std::string_view bytes{static_cast<const char*>(tensor.const_data_ptr()),
                                 tensor.nbytes()};
    return static_cast<std::int64_t>(std::hash<std::string_view>{}(bytes));
}

void expect_same_bits_everywhere(const HostComm& world, const at::Tensor& tensor) {
    for (const std::int64_t other : world.all_gather(hash(tensor)))
        EXPECT_EQ(other, hash(tensor));
}

std::unique_ptr<Communicator> make(const HostComm& world,
                                   ThreadSupport threads = test::environment().thread_support(),
                                   const CommunicatorOptions& options = {}) {
    return make_mpi_communicator(world, threads, options);
}

class AllReduceTest : public testing::TestWithParam<std::int64_t> {};

// Around the borders: nothing, fewer elements than ranks, the change from recursive doubling to
// direct sums (32 KiB), a message (128 KiB), short last ones, many, the change to the ring (16 MiB
// of fp64).
INSTANTIATE_TEST_SUITE_P(
    Sizes,
    AllReduceTest,
    testing::Values(
        0, 1, 2, 3, 5, 64, 4096, 8192, 8193, 65536, 65537, 131073, 400001, 1000003, 2097153));

TEST_P(AllReduceTest, Fp32IsTheSumWithTheSameBitsEverywhere) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    at::Tensor tensor = values_of(world.rank(), GetParam(), at::kFloat);
    const at::Tensor expected = sum_in_fp64(world.size(), GetParam(), at::kFloat);

    communicator->all_reduce_sum(tensor);

    // n - 1 additions, each within half a unit in the last place of at most n 2^24.
    const double bound = world.size() * world.size() * 1.0;
    EXPECT_LE(largest_difference(tensor, expected), bound);
    expect_same_bits_everywhere(world, tensor);
}

TEST_P(AllReduceTest, Fp64IsTheSumWithTheSameBitsEverywhere) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    at::Tensor tensor = values_of(world.rank(), GetParam(), at::kDouble);
    const at::Tensor expected = sum_in_fp64(world.size(), GetParam(), at::kDouble);

    communicator->all_reduce_sum(tensor);

    const double bound = 2 * world.size() * world.size() * 0x1p-29;  // the reference rounds too
    EXPECT_LE(largest_difference(tensor, expected), bound);
    expect_same_bits_everywhere(world, tensor);
}

TEST_P(AllReduceTest, WholeNumbersAreExact) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    const int n = world.size();
    at::Tensor tensor = at::arange(GetParam(), at::kFloat).remainder(1000) * (world.rank() + 1);

    communicator->all_reduce_sum(tensor);

    const at::Tensor expected =
        at::arange(GetParam(), at::kFloat).remainder(1000) * (n * (n + 1) / 2);
    EXPECT_TRUE(at::equal(tensor, expected));
}

TEST_P(AllReduceTest, OneThreadGivesTheSameBitsAsTheCommunicationThread) {
    const HostComm world = test::world();
    const auto threaded = make(world);
    const auto inline_only = make(world, ThreadSupport::funneled);
    at::Tensor one = values_of(world.rank(), GetParam(), at::kFloat);
    at::Tensor other = one.clone();

    threaded->all_reduce_sum(one);
    inline_only->all_reduce_sum(other);

    EXPECT_TRUE(at::equal(one, other));
}

// Terms of 8 bits, whose sum is exact in fp32.
TEST_P(AllReduceTest, Bf16IsRoundedOnceWhateverTheSize) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    const auto terms = [&](int rank) {
        return ((at::arange(GetParam(), at::kFloat) * 7).remainder(1000) * (rank + 1))
            .to(at::kBFloat16);
    };
    at::Tensor exact = terms(0).to(at::kFloat);
    for (int rank = 1; rank < world.size(); ++rank)
        exact += terms(rank).to(at::kFloat);
    at::Tensor tensor = terms(world.rank());

    communicator->all_reduce_sum(tensor);

    EXPECT_TRUE(at::equal(tensor, exact.to(at::kBFloat16)));
}

// More than is summed directly at once.
TEST(MpiCommunicatorTest, ALongTensorOf16BitsIsSummedInParts) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    constexpr std::int64_t count = (std::int64_t{17} << 20) / 2 + 5;
    at::Tensor tensor =
        (at::arange(count, at::kFloat).remainder(100) + world.rank()).to(at::kBFloat16);

    communicator->all_reduce_sum(tensor);

    const int n = world.size();
    const at::Tensor exact = at::arange(count, at::kFloat).remainder(100) * n + n * (n - 1) / 2;
    EXPECT_TRUE(at::equal(tensor, exact.to(at::kBFloat16)));
}

TEST(MpiCommunicatorTest, HalfPrecisionSumsWholeNumbersExactly) {
    const HostComm world = test::world();
    const auto communicator = make(world);

    for (const auto type : {at::kBFloat16, at::kHalf})
        for (const std::int64_t count : {10, 200000}) {
            at::Tensor tensor = at::ones({count}, type);
            communicator->all_reduce_sum(tensor);
            EXPECT_TRUE(at::equal(tensor, at::full({count}, world.size(), type)));
        }
}

TEST(MpiCommunicatorTest, NanPayloadsAreTheSameEverywhere) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    for (const std::int64_t count : {4, 100000}) {
        const std::int32_t bits = 0x7fc00000 + world.rank() + 1;
        float nan = 0;
        std::memcpy(&nan, &bits, sizeof nan);
        at::Tensor tensor = at::full({count}, nan, at::kFloat);

        communicator->all_reduce_sum(tensor);

        EXPECT_TRUE(tensor.isnan().all().item<bool>());
        expect_same_bits_everywhere(world, tensor);
    }
}

TEST(MpiCommunicatorTest, ManyInFlightCompleteInOrder) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    std::vector<at::Tensor> tensors;
    std::vector<std::unique_ptr<Work>> works;
    for (int i = 0; i < 60; ++i)
        tensors.push_back(at::full({i % 2 == 0 ? 100 : 100000}, i, at::kFloat));

    for (auto& tensor : tensors)
        works.push_back(communicator->start_all_reduce_sum(tensor));
    works.back()->wait();

    for (int i = 0; i < 60; ++i) {
        EXPECT_TRUE(works[std::size_t(i)]->done()) << i;
        EXPECT_TRUE((tensors[std::size_t(i)] == i * world.size()).all().item<bool>()) << i;
    }
}

TEST(MpiCommunicatorTest, OverlapsWithHostCollectivesOfTheMainThread) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    at::Tensor tensor = at::ones({4000000}, at::kFloat);

    const auto work = communicator->start_all_reduce_sum(tensor);
    double total = 0;
    for (int i = 0; i < 50; ++i)
        total += world.all_reduce(1.0, ReduceOp::sum);
    work->wait();

    EXPECT_EQ(total, 50.0 * world.size());
    EXPECT_TRUE((tensor == world.size()).all().item<bool>());
}

TEST(MpiCommunicatorTest, BroadcastMakesAllTensorsTheRoots) {
    const HostComm world = test::world();
    const auto communicator = make(world);

    for (int root = 0; root < world.size(); ++root) {
        at::Tensor tensor = at::full({1000}, world.rank(), at::kLong);
        communicator->broadcast(tensor, root);
        EXPECT_TRUE((tensor == root).all().item<bool>());
    }
}

TEST(MpiCommunicatorTest, FinishesWorkInFlightWhenDestroyed) {
    const HostComm world = test::world();
    at::Tensor tensor = at::ones({1000000}, at::kFloat);
    std::unique_ptr<Work> work;

    {
        const auto communicator = make(world);
        work = communicator->start_all_reduce_sum(tensor);
    }

    EXPECT_TRUE(work->done());
    work->wait();
    EXPECT_TRUE((tensor == world.size()).all().item<bool>());
}

TEST(MpiCommunicatorTest, ForgottenWorkStillRuns) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    at::Tensor forgotten = at::ones({1000}, at::kFloat);
    at::Tensor awaited = at::ones({1000}, at::kFloat);

    communicator->start_all_reduce_sum(forgotten).reset();
    communicator->all_reduce_sum(awaited);

    EXPECT_TRUE((forgotten == world.size()).all().item<bool>());
}

TEST(MpiCommunicatorTest, OwnTimeLiesWithinTheWait) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    at::Tensor tensor = at::ones({1000000}, at::kFloat);
    const auto start = std::chrono::steady_clock::now();

    const auto work = communicator->start_all_reduce_sum(tensor);
    work->wait();

    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
    EXPECT_GT(work->own_ms(), 0);
    EXPECT_LE(work->own_ms(), wall.count());
}

TEST(MpiCommunicatorTest, AMissingRankIsAnErrorAtTheDeadline) {
    const HostComm world = test::world();
    for (const std::int64_t count : {100, 1000000, 5000000}) {
        const auto communicator = make(world, ThreadSupport::multiple, {.deadline = 1s});
        at::Tensor tensor = at::ones({count}, at::kFloat);

        if (world.rank() != 0) {
            const auto work = communicator->start_all_reduce_sum(tensor);
            EXPECT_THROW(work->wait(), CommError);
            const auto later = communicator->start_all_reduce_sum(tensor);
            EXPECT_THROW(later->wait(), CommError);
        }
        world.barrier();
    }
}

TEST(MpiCommunicatorTest, ASumDoesNotDependOnWhatIsSummedWithIt) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    const at::Tensor values = values_of(world.rank(), 1200000, at::kFloat);
    at::Tensor whole = values.clone();
    at::Tensor parts = values.clone();

    communicator->all_reduce_sum(whole);
    communicator->all_reduce_sum(parts.narrow(0, 0, 333333));
    communicator->all_reduce_sum(parts.narrow(0, 333333, 1200000 - 333333));

    EXPECT_TRUE(at::equal(whole, parts));
}

TEST(MpiCommunicatorTest, AnUnwindingRankAbandonsWhatIsInFlight) {
    const HostComm world = test::world();
    at::Tensor tensor = at::ones({1000000}, at::kFloat);
    std::unique_ptr<Work> work;

    // Rank 0 never starts its part; the others would wait for half an hour.
    const auto fail = [&] {
        const auto communicator = make(world, ThreadSupport::multiple);
        if (world.rank() != 0)
            work = communicator->start_all_reduce_sum(tensor);
        throw IoError("disk is full");
    };
    EXPECT_THROW(fail(), IoError);

    if (work) {
        EXPECT_THROW(work->wait(), CommError);
    }
    world.barrier();
}

TEST(MpiCommunicatorTest, AWaitingCommunicationThreadLeavesItsCore) {
    const HostComm world = test::world();
    const auto communicator = make(world);
    at::Tensor tensor = at::ones({1000000}, at::kFloat);
    world.barrier();
    const auto cpu_seconds = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               1e-6 * double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    };
    const double cpu_before = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();

    if (world.rank() == 0)
        std::this_thread::sleep_for(500ms);
    communicator->all_reduce_sum(tensor);

    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    EXPECT_LE(cpu_seconds() - cpu_before, 0.5 * wall.count());
}

TEST(MpiCommunicatorTest, RefusesATensorThatIsNotContiguous) {
    const HostComm world = test::world();
    const auto communicator = make(world);

    EXPECT_THROW(communicator->start_all_reduce_sum(at::ones({4, 4}).t().slice(0, 0, 2)),
                 InternalError);
    EXPECT_THROW(communicator->start_all_reduce_sum(at::ones({4}, at::kLong)), InternalError);
}

}  // namespace
}  // namespace hetseq
