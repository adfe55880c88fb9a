// Reduce-scatter and all-gather with ranges of any lengths, over MPI.
#include <chrono>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/mpi/mpi_handle.hpp"

#include "comm/communicators.hpp"
#include "comm/mpi/direct_ranges.hpp"
#include "comm/range_cuts.hpp"
#include "comm/range_values.hpp"
#include "test_world.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Communicator> make_ranged(
    const HostComm& world, ThreadSupport threads = test::environment().thread_support()) {
    return make_mpi_communicator(world, threads, {});
}

class RangesTest : public testing::TestWithParam<std::int64_t> {
protected:
    const HostComm world_ = test::world();
    const std::unique_ptr<Communicator> communicator_ = make_ranged(world_);
};

// Nothing, fewer than ranks, exchanged as a whole, a message and a bit, many messages.
INSTANTIATE_TEST_SUITE_P(Counts,
                         RangesTest,
                         testing::Values(0, 1, 3, 5, 4096, 16384, 40001, 500009));

TEST_P(RangesTest, AnOwnerHasTheBitsOfAnAllReduce) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
        const at::Tensor values = test::terms(world_.rank(), GetParam(), type);
        const at::Tensor sums = values.clone();
        communicator_->all_reduce_sum(sums);
        for (const auto& ranges : test::cuts_of(GetParam(), world_.size())) {
            const at::Tensor own_sums = values.clone();

            communicator_->start_reduce_scatter_sum(own_sums, ranges)->wait();

            for (const OwnedRange& range : ranges) {
                if (range.owner != world_.rank())
                    continue;
                EXPECT_TRUE(at::equal(test::part_of(own_sums, range), test::part_of(sums, range)))
                    << type << " from " << range.begin;
            }
        }
    }
}

TEST_P(RangesTest, AllHaveWhatTheOwnersHad) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf}) {
        std::vector<at::Tensor> values_of;  // by rank
        for (int rank = 0; rank < world_.size(); ++rank)
            values_of.push_back(test::terms(rank, GetParam(), type));
        for (const auto& ranges : test::cuts_of(GetParam(), world_.size())) {
            const at::Tensor values = values_of.at(static_cast<std::size_t>(world_.rank())).clone();

            communicator_->start_all_gather(values, ranges)->wait();

            for (const OwnedRange& range : ranges)
                EXPECT_TRUE(at::equal(
                    test::part_of(values, range),
                    test::part_of(values_of.at(static_cast<std::size_t>(range.owner)), range)))
                    << type << " from " << range.begin << " of rank " << range.owner;
        }
    }
}

// An all-reduce of more than 16 MiB goes around a ring, where sums begin with an element's chunk.
TEST(Ranges, AnOwnerHasTheBitsOfAnAllReduceAroundTheRing) {
    const HostComm world = test::world();
    const auto communicator = make_ranged(world);
    for (const auto& [count, type] : {std::pair{std::int64_t{4'300'007}, at::kFloat},
                                      std::pair{std::int64_t{2'200'001}, at::kDouble},
                                      std::pair{std::int64_t{9'000'001}, at::kBFloat16}}) {
        const at::Tensor sums = test::terms(world.rank(), count, type);
        const at::Tensor values = sums.clone();
        communicator->all_reduce_sum(sums);
        for (const auto& ranges : test::cuts_of(count, world.size())) {
            const at::Tensor own = values.clone();
            communicator->start_reduce_scatter_sum(own, ranges)->wait();
            for (const OwnedRange& range : ranges)
                EXPECT_TRUE(range.owner != world.rank() ||
                            at::equal(test::part_of(own, range), test::part_of(sums, range)))
                    << type << " from " << range.begin;
        }
    }
}

TEST(Ranges, RunOnTheCallersThreadWhereMpiAllowsNoOther) {
    const HostComm world = test::world();
    const auto communicator = make_ranged(world, ThreadSupport::serialized);
    const auto ranges = test::cuts_of(100003, world.size()).back();
    const at::Tensor values = at::ones({100003}, at::kFloat);

    EXPECT_TRUE(communicator->start_reduce_scatter_sum(values, ranges)->done());
    EXPECT_TRUE(communicator->start_all_gather(values, ranges)->done());

    EXPECT_TRUE((values == world.size()).all().item<bool>());
}

// Several at once, of which a rank has started all while another has not begun.
TEST(Ranges, FollowOneAnotherInOrder) {
    const HostComm world = test::world();
    const auto communicator = make_ranged(world);
    std::vector<at::Tensor> buckets;
    std::vector<std::unique_ptr<Work>> works;
    if (world.rank() == world.size() - 1)
        std::this_thread::sleep_for(200ms);

    for (int i = 1; i <= 20; ++i) {
        const std::int64_t count = i % 4 == 0 ? 11 : 9000 * i;
        const auto cuts = test::cuts_of(count, world.size());
        const auto& ranges = cuts[static_cast<std::size_t>(i) % cuts.size()];
        buckets.push_back(at::full({count}, i, at::kFloat));
        works.push_back(communicator->start_reduce_scatter_sum(buckets.back(), ranges));
        works.push_back(communicator->start_all_gather(buckets.back(), ranges));
    }
    for (const auto& work : works)
        work->wait();

    for (int i = 1; i <= 20; ++i)
        EXPECT_TRUE(
            (buckets[static_cast<std::size_t>(i) - 1] == i * world.size()).all().item<bool>())
            << i;
}

// 80 MB of one rank: its parts from two or more others do not fit the window at once.
TEST(Ranges, WhatOneRankTakesInDoesNotGrowWithTheTensor) {
    const HostComm world = test::world();
    const HostComm comm = world.duplicate();
    const std::int64_t count = 20'000'003;
    const std::vector<OwnedRange> ranges = {{0, 0, count}};
    const at::Tensor values = at::full({count}, world.rank() + 1, at::kFloat);
    Scratch scratch;
    const std::atomic<bool> abandoned = false;
    Progress progress{10min, abandoned, "the other ranks"};

    direct_reduce_scatter<float>(mpi_handle(comm),
                                 values.mutable_data_ptr<float>(),
                                 static_cast<std::size_t>(count),
                                 SumOrder::of_ranks,
                                 ranges,
                                 60 << 10,
                                 scratch,
                                 progress);

    const int n = world.size();
    if (world.rank() == 0) {
        EXPECT_TRUE((values == n * (n + 1) / 2).all().item<bool>());
        EXPECT_LE(scratch.size(), scatter_window_bytes);
    } else {
        EXPECT_TRUE(scratch.empty());
    }
}

TEST(Ranges, AMissingRankIsAnErrorAtTheDeadline) {
    const HostComm world = test::world();
    if (world.size() == 1)
        GTEST_SKIP() << "takes two ranks";
    const HostComm comm = world.duplicate();
    const auto ranges = test::cuts_of(300000, world.size()).front();
    const std::atomic<bool> abandoned = false;
    auto scratch = std::make_unique<Scratch>();
    auto values = std::make_unique<at::Tensor>(at::ones({300000}, at::kFloat));

    if (world.rank() != 0) {
        Progress progress{300ms, abandoned, "rank 0"};
        EXPECT_THROW(direct_reduce_scatter<float>(mpi_handle(comm),
                                                  values->mutable_data_ptr<float>(),
                                                  300000,
                                                  SumOrder::of_ranks,
                                                  ranges,
                                                  4096,
                                                  *scratch,
                                                  progress),
                     CommError);
        // MPI may still write to them.
        static_cast<void>(values.release());
        static_cast<void>(scratch.release());
    }
    world.barrier();
}

}  // namespace
}  // namespace hetseq
