#include <chrono>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/exp2.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"

#include "comm/mpi/all_reduce.hpp"
#include "comm/range_values.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t some_message = 4096;  // bytes

// Rank r's values, of unlike size, so that another order of additions shows in the last bits.
at::Tensor terms_of(int rank, std::int64_t count, at::ScalarType type) {
    return test::repeated(count, [&](const at::Tensor& i) {
        return (at::cos(i * (rank + 2) + 0.3) * at::exp2(at::remainder(i + 5 * rank, 11))).to(type);
    });
}

// Of 16 bits in fp32, rounded once.
at::Tensor sum_in_rank_order(int ranks, std::int64_t count, at::ScalarType type) {
    const at::ScalarType added = c10::isReducedFloatingType(type) ? at::kFloat : type;
    at::Tensor sum = terms_of(0, count, type).to(added);
    for (int r = 1; r < ranks; ++r)
        sum += terms_of(r, count, type).to(added);
    return sum.to(type);
}

struct Watch {
    std::atomic<bool> abandoned = false;
    std::unique_ptr<Scratch> scratch = std::make_unique<Scratch>();
};

template <class Value>
void run_on(const HostComm& comm, at::Tensor& tensor, std::size_t message_bytes, Watch& watch) {
    Progress progress{10min, watch.abandoned, "the other ranks"};
    direct_all_reduce(mpi_handle(comm),
                      tensor.mutable_data_ptr<Value>(),
                      static_cast<std::size_t>(tensor.numel()),
                      message_bytes,
                      *watch.scratch,
                      progress);
}

template <class Value>
void expect_sum_in_rank_order(std::int64_t count, at::ScalarType type, std::size_t message_bytes) {
    const HostComm world = test::world();
    at::Tensor tensor = terms_of(world.rank(), count, type);
    Watch watch;

    run_on<Value>(world, tensor, message_bytes, watch);

    EXPECT_TRUE(at::equal(tensor, sum_in_rank_order(world.size(), count, type)))
        << count << " of " << type;
}

class DirectAllReduceTest : public testing::TestWithParam<std::int64_t> {};

// Nothing, fewer elements than ranks, one message, some more, short last messages, many.
INSTANTIATE_TEST_SUITE_P(
    Sizes,
    DirectAllReduceTest,
    testing::Values(0, 1, 2, 3, 7, 1024, 1025, 4096, 4099, 30011, 250007, 1199882));

TEST_P(DirectAllReduceTest, IsTheSumInTheOrderOfRanksToTheBit) {
    expect_sum_in_rank_order<float>(GetParam(), at::kFloat, some_message);
    expect_sum_in_rank_order<double>(GetParam(), at::kDouble, some_message);
}

TEST_P(DirectAllReduceTest, HalfPrecisionIsRoundedOnce) {
    expect_sum_in_rank_order<c10::BFloat16>(GetParam(), at::kBFloat16, some_message);
    expect_sum_in_rank_order<c10::Half>(GetParam(), at::kHalf, some_message);
}

TEST(DirectAllReduce, TheBitsDoNotDependOnTheMessages) {
    for (const std::size_t message_bytes : {8U, 1000U, 61440U, 1U << 20})
        expect_sum_in_rank_order<float>(5003, at::kFloat, message_bytes);
}

TEST(DirectAllReduce, FollowsUponItselfWithoutMixing) {
    const HostComm world = test::world();
    Watch watch;
    const int n = world.size();

    for (int i = 1; i <= 50; ++i) {
        at::Tensor tensor = at::full({i % 3 == 0 ? 7 : 5000 * i}, i, at::kFloat);
        run_on<float>(world, tensor, some_message, watch);
        EXPECT_TRUE((tensor == i * n).all().item<bool>()) << i;
    }
}

TEST(DirectAllReduce, WaitsForALateRank) {
    const HostComm world = test::world();
    Watch watch;
    at::Tensor tensor = at::ones({300000}, at::kFloat);

    if (world.rank() == world.size() - 1)
        std::this_thread::sleep_for(300ms);
    run_on<float>(world, tensor, some_message, watch);

    EXPECT_TRUE((tensor == world.size()).all().item<bool>());
}

// Throws while the messages of the ranks that are there are under way.
TEST(DirectAllReduce, AMissingRankIsAnErrorAtTheDeadline) {
    const HostComm world = test::world();
    const HostComm comm = world.duplicate();
    Watch watch;
    auto tensor = std::make_unique<at::Tensor>(at::ones({300000}, at::kFloat));

    if (world.rank() != 0) {
        Progress progress{500ms, watch.abandoned, "rank 0"};
        EXPECT_THROW(direct_all_reduce(mpi_handle(comm),
                                       tensor->mutable_data_ptr<float>(),
                                       static_cast<std::size_t>(tensor->numel()),
                                       some_message,
                                       *watch.scratch,
                                       progress),
                     CommError);
        // MPI may still write to them.
        static_cast<void>(tensor.release());
        static_cast<void>(watch.scratch.release());
    }
    world.barrier();
}

}  // namespace
}  // namespace hetseq
