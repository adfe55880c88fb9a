// Reduce-scatter and all-gather with ranges of any lengths, over the stand-ins of CUDA and NCCL.
#include "comm/nccl/nccl_ranges.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "comm/communicators.hpp"
#include "comm/range_cuts.hpp"
#include "comm/range_values.hpp"
#include "stand_in/nccl/stand_in_nccl.hpp"
#include "test_world.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using stand_in::network;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr auto all_types = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};

// What `function` asks NCCL for: how many calls of each kind.
template <class Function>
std::map<std::string, long> calls_in(Function&& function) {
    std::map<std::string, long> calls;
    const auto kinds = {
        "a group", "a reduction", "a broadcast", "a reduce-scatter", "an all-gather"};
    for (const std::string kind : kinds)
        calls[kind] = -stand_in::calls(kind);
    function();
    for (auto& [kind, count] : calls)
        count += stand_in::calls(kind);
    std::erase_if(calls, [](const auto& call) { return call.second == 0; });
    return calls;
}

class NcclRangesTest : public testing::Test {
protected:
    void SetUp() override {
        network() = {};
        stand_in::take_misuses();
    }
    void TearDown() override {
        network() = {};
        EXPECT_THAT(stand_in::take_misuses(), IsEmpty());
    }

    std::unique_ptr<Communicator> make(std::chrono::seconds deadline = 20s) {
        return make_nccl_communicator(
            world_, device_, {.deadline = deadline, .join_deadline = 20s});
    }
    at::Tensor full(std::int64_t count, double value) const {
        return at::full({count}, value, at::TensorOptions(at::kFloat).device(device_));
    }
    // Each rank's values are its number plus one.
    at::Tensor numbered(std::int64_t count) const { return full(count, world_.rank() + 1); }
    float sum_of_numbers() const {
        return static_cast<float>(world_.size() * (world_.size() + 1) / 2);
    }

    HostComm world_ = test::world();
    at::Device device_{at::kCUDA, static_cast<c10::DeviceIndex>(world_.rank())};
    c10::cuda::CUDAGuard current_{device_};  // as the program makes it
};

class NcclRangesOfCountTest : public NcclRangesTest,
                              public testing::WithParamInterface<std::int64_t> {};

// Nothing, fewer than ranks, as many for each rank, not so, many.
INSTANTIATE_TEST_SUITE_P(Counts, NcclRangesOfCountTest, testing::Values(0, 1, 5, 12, 30000, 40001));

TEST_P(NcclRangesOfCountTest, AnOwnerHasTheBitsOfAnAllReduce) {
    const auto communicator = make();
    for (const at::ScalarType type : all_types)
        for (const auto& ranges : test::cuts_of(GetParam(), world_.size())) {
            const at::Tensor sums = test::terms(world_.rank(), GetParam(), type).to(device_);
            const at::Tensor own_sums = sums.clone();
            at::Tensor in_order = test::terms(0, GetParam(), type);
            for (int rank = 1; rank < world_.size(); ++rank)
                in_order += test::terms(rank, GetParam(), type);
            communicator->all_reduce_sum(sums);

            communicator->start_reduce_scatter_sum(own_sums, ranges)->wait();

            for (const OwnedRange& range : ranges) {
                if (range.owner != world_.rank())
                    continue;
                const at::Tensor own = test::part_of(own_sums, range).cpu();
                EXPECT_TRUE(at::equal(own, test::part_of(sums, range).cpu()))
                    << type << " from " << range.begin;
                EXPECT_TRUE(at::equal(own, test::part_of(in_order, range)))
                    << type << " from " << range.begin;
            }
        }
}

TEST_P(NcclRangesOfCountTest, AllHaveWhatTheOwnersHad) {
    const auto communicator = make();
    for (const at::ScalarType type : all_types)
        for (const auto& ranges : test::cuts_of(GetParam(), world_.size())) {
            const at::Tensor values = test::terms(world_.rank(), GetParam(), type).to(device_);

            communicator->start_all_gather(values, ranges)->wait();

            for (const OwnedRange& range : ranges)
                EXPECT_TRUE(
                    at::equal(test::part_of(values, range).cpu(),
                              test::part_of(test::terms(range.owner, GetParam(), type), range)))
                    << type << " from " << range.begin << " of rank " << range.owner;
        }
}

TEST_F(NcclRangesTest, EvenPartsTakeNcclsOwnCalls) {
    const auto communicator = make();
    const std::int64_t count = 24;  // of each rank, in two neighbours
    std::vector<OwnedRange> halves;
    for (int rank = 0; rank < world_.size(); ++rank) {
        halves.push_back({rank, rank * count, count / 3});
        halves.push_back({rank, rank * count + count / 3, count - count / 3});
    }
    const at::Tensor values = numbered(count * world_.size());

    EXPECT_THAT(calls_in([&] { communicator->start_reduce_scatter_sum(values, halves)->wait(); }),
                ElementsAre(Pair("a reduce-scatter", 1)));
    EXPECT_THAT(calls_in([&] { communicator->start_all_gather(values, halves)->wait(); }),
                ElementsAre(Pair("an all-gather", 1)));

    EXPECT_TRUE((values.cpu() == sum_of_numbers()).all().item<bool>());
}

TEST_F(NcclRangesTest, OtherPartsAreOneGroup) {
    if (world_.size() == 1)
        GTEST_SKIP() << "takes two ranks";
    const auto communicator = make();
    const int last = world_.size() - 1;
    const std::vector<OwnedRange> ranges = {
        {last, 0, 3}, {0, 3, 2}, {0, 5, 0}, {0, 5, 6}, {last, 11, 4}};  // three for NCCL
    const at::Tensor values = numbered(15);

    EXPECT_THAT(calls_in([&] { communicator->start_reduce_scatter_sum(values, ranges)->wait(); }),
                ElementsAre(Pair("a group", 1), Pair("a reduction", 3)));
    EXPECT_THAT(calls_in([&] { communicator->start_all_gather(values, ranges)->wait(); }),
                ElementsAre(Pair("a broadcast", 3), Pair("a group", 1)));

    EXPECT_TRUE((values.cpu() == sum_of_numbers()).all().item<bool>());
}

// All ranks in order, but not of one length, or of one length, but not in order.
TEST_F(NcclRangesTest, PartsThatAreNearlyEvenAreNoCallOfNccls) {
    if (world_.size() == 1)
        GTEST_SKIP() << "takes two ranks";
    const auto communicator = make();
    std::vector<std::int64_t> unlike(static_cast<std::size_t>(world_.size()), 4);
    unlike.back() = 5;
    const std::vector<std::int64_t> alike(unlike.size(), 4);
    std::vector<int> owners, turned;
    for (int rank = 0; rank < world_.size(); ++rank) {
        owners.push_back(rank);
        turned.push_back(world_.size() - 1 - rank);
    }
    for (const auto& ranges : {test::ranges_of(unlike, owners), test::ranges_of(alike, turned)}) {
        const at::Tensor values = numbered(ranges.back().begin + ranges.back().length);

        EXPECT_THAT(
            calls_in([&] { communicator->start_reduce_scatter_sum(values, ranges)->wait(); }),
            ElementsAre(Pair("a group", 1), Pair("a reduction", world_.size())));
        EXPECT_THAT(calls_in([&] { communicator->start_all_gather(values, ranges)->wait(); }),
                    ElementsAre(Pair("a broadcast", world_.size()), Pair("a group", 1)));

        EXPECT_TRUE((values.cpu() == sum_of_numbers()).all().item<bool>());
    }
}

TEST_F(NcclRangesTest, VeryManyRangesAreSeveralGroupsOfOneWork) {
    if (world_.size() == 1)
        GTEST_SKIP() << "takes two ranks";
    const auto communicator = make();
    std::vector<OwnedRange> ranges;
    for (std::int64_t i = 0; i < 2 * std::int64_t{most_in_nccl_group} + 1; ++i)
        ranges.push_back({static_cast<int>(i) % world_.size(), 2 * i, 2});
    const auto count = static_cast<long>(ranges.size());
    const at::Tensor values = numbered(2 * count);
    network().kernel_time = 4ms;
    std::unique_ptr<Work> work;

    EXPECT_THAT(calls_in([&] {
                    work = communicator->start_reduce_scatter_sum(values, ranges);
                    work->wait();
                }),
                ElementsAre(Pair("a group", 3), Pair("a reduction", count)));
    EXPECT_GE(work->own_ms(), 3 * 4);
    EXPECT_THAT(calls_in([&] { communicator->start_all_gather(values, ranges)->wait(); }),
                ElementsAre(Pair("a broadcast", count), Pair("a group", 3)));

    EXPECT_TRUE((values.cpu() == sum_of_numbers()).all().item<bool>());
}

// Several at once, of which a rank has started all while another has not begun.
TEST_F(NcclRangesTest, FollowOneAnotherInOrder) {
    const auto communicator = make();
    std::vector<at::Tensor> buckets;
    std::vector<std::unique_ptr<Work>> works;
    if (world_.rank() == world_.size() - 1)
        std::this_thread::sleep_for(200ms);

    for (int i = 1; i <= 20; ++i) {
        const std::int64_t count = i % 4 == 0 ? 12 : 900 * i;
        const auto cuts = test::cuts_of(count, world_.size());
        const auto& ranges = cuts[static_cast<std::size_t>(i) % cuts.size()];
        buckets.push_back(full(count, i));
        works.push_back(communicator->start_reduce_scatter_sum(buckets.back(), ranges));
        works.push_back(communicator->start_all_gather(buckets.back(), ranges));
        works.push_back(communicator->start_all_reduce_sum(buckets.back()));
    }
    works.back()->wait();

    for (int i = 1; i <= 20; ++i)
        EXPECT_TRUE(
            (buckets[static_cast<std::size_t>(i) - 1].cpu() == i * world_.size() * world_.size())
                .all()
                .item<bool>())
            << i;
    EXPECT_TRUE(
        std::all_of(works.begin(), works.end(), [](const auto& work) { return work->done(); }));
}

TEST_F(NcclRangesTest, ComeAfterTheStreamsWorkAndBeforeWhatFollows) {
    const auto communicator = make();
    for (const auto& ranges : test::cuts_of(1000, world_.size())) {
        const at::Tensor values = at::empty({1000}, at::TensorOptions(at::kFloat).device(device_));
        auto* const data = values.mutable_data_ptr<float>();
        stand_in::launch(c10::cuda::getCurrentCUDAStream(device_.index()).stream(),
                         "fill",
                         {stand_in::writes(data, 1000)},
                         [data, value = static_cast<float>(world_.rank() + 1)] {
                             std::this_thread::sleep_for(5ms);
                             std::fill_n(data, 1000, value);
                         });

        communicator->start_reduce_scatter_sum(values, ranges)->wait();
        values.mul_(2);
        communicator->start_all_gather(values, ranges)->wait();
        const at::Tensor after = values + 1;

        EXPECT_TRUE(after.cpu().equal(at::full({1000}, 2 * sum_of_numbers() + 1)));
    }
}

TEST_F(NcclRangesTest, ARankThatDoesNotComeEndsTheOthersAtTheirDeadline) {
    if (world_.size() == 1)
        GTEST_SKIP() << "takes two ranks";
    for (const auto& ranges :
         {test::cuts_of(12, world_.size()).front(), test::cuts_of(12, world_.size()).back()})
        for (const auto start :
             {&Communicator::start_reduce_scatter_sum, &Communicator::start_all_gather}) {
            const auto communicator = make(1s);
            const at::Tensor values = numbered(12);
            if (world_.rank() != world_.size() - 1) {
                const int aborted = stand_in::aborted_communicators();

                EXPECT_THROW(((*communicator).*start)(values, ranges)->wait(), CommError);

                EXPECT_EQ(stand_in::aborted_communicators(), aborted + 1);
                EXPECT_THROW(communicator->start_all_gather(values, ranges), CommError);
            }
            world_.barrier();
        }
}

// A group that stays open would take in whatever this thread asks NCCL for afterwards.
TEST_F(NcclRangesTest, ACallThatFailsEndsItsGroupAndTheCommunicator) {
    const std::vector<OwnedRange> ranges = test::cuts_of(100, world_.size()).back();
    const auto communicator = make();
    const at::Tensor values = numbered(100);
    const int aborted = stand_in::aborted_communicators();
    network().call_result = ncclSystemError;

    EXPECT_THROW(communicator->start_reduce_scatter_sum(values, ranges), CommError);

    network().call_result = ncclSuccess;
    EXPECT_EQ(stand_in::aborted_communicators(), aborted + 1);
    EXPECT_THROW(communicator->start_all_gather(values, ranges), CommError);
    make()->all_reduce_sum(values);
    EXPECT_TRUE((values.cpu() == sum_of_numbers()).all().item<bool>());
}

}  // namespace
}  // namespace hetseq
