// Reduce-scatter and all-gather with ranges of any lengths over unlike devices, over the stand-ins.
#include <algorithm>
#include <chrono>
#include <thread>

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/communicator.hpp"

#include "comm/mixed/layouts.hpp"
#include "comm/range_cuts.hpp"
#include "comm/range_values.hpp"
#include "stand_in/nccl/stand_in_nccl.hpp"

namespace hetseq {
namespace {

using namespace std::chrono_literals;
using test::cpu;
using test::Layout;

constexpr auto gradient_types = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};
constexpr auto some_counts = {0, 1, 5, 1200, 40001};

class MixedRangesTest : public test::LayoutTest {
protected:
    // `check(range)` of those that this rank owns.
    template <class Check>
    void for_own(const std::vector<OwnedRange>& ranges, Check&& check) const {
        for (const OwnedRange& range : ranges)
            if (range.owner == world_.rank())
                check(range);
    }
    bool is_last() const { return world_.rank() == world_.size() - 1; }
};

INSTANTIATE_TEST_SUITE_P(Layouts,
                         MixedRangesTest,
                         testing::ValuesIn(test::all_layouts()),
                         test::name_of_layout);

TEST_P(MixedRangesTest, AnOwnerHasTheSums) {
    const auto communicator = make(GetParam());
    for (const at::ScalarType type : gradient_types)
        for (const std::int64_t count : some_counts) {
            at::Tensor sums = at::zeros({count}, type);
            for (int rank = 0; rank < world_.size(); ++rank)
                sums += test::whole_terms(rank, count, type);
            for (const auto& ranges : test::cuts_of(count, world_.size())) {
                const at::Tensor values =
                    test::whole_terms(world_.rank(), count, type).to(communicator->device());

                communicator->start_reduce_scatter_sum(values, ranges)->wait();

                for_own(ranges, [&](const OwnedRange& range) {
                    EXPECT_TRUE(
                        at::equal(test::part_of(values, range).cpu(), test::part_of(sums, range)))
                        << type << " from " << range.begin << " of " << count;
                });
            }
        }
}

TEST_P(MixedRangesTest, SumsAreAsExactAsTheirType) {
    const auto communicator = make(GetParam());
    const std::int64_t count = 20011;
    at::Tensor sums = at::zeros({count}, at::kDouble);
    for (int rank = 0; rank < world_.size(); ++rank)
        sums += test::terms(rank, count, at::kDouble);
    for (const auto& ranges : test::cuts_of(count, world_.size())) {
        const at::Tensor values =
            test::terms(world_.rank(), count, at::kDouble).to(communicator->device());

        communicator->start_reduce_scatter_sum(values, ranges)->wait();

        for_own(ranges, [&](const OwnedRange& range) {
            EXPECT_TRUE(at::allclose(
                test::part_of(values, range).cpu(), test::part_of(sums, range), 1e-12, 1e-12))
                << "from " << range.begin;
        });
    }
}

TEST_P(MixedRangesTest, AllHaveWhatTheOwnersHad) {
    const auto communicator = make(GetParam());
    for (const at::ScalarType type : gradient_types)
        for (const std::int64_t count : some_counts) {
            std::vector<at::Tensor> values_of;  // by rank
            for (int rank = 0; rank < world_.size(); ++rank)
                values_of.push_back(test::terms(rank, count, type));
            for (const auto& ranges : test::cuts_of(count, world_.size())) {
                // Not the tensor itself, where the device is a CPU.
                const at::Tensor values = values_of.at(static_cast<std::size_t>(world_.rank()))
                                              .clone()
                                              .to(communicator->device());

                communicator->start_all_gather(values, ranges)->wait();

                const at::Tensor host = values.cpu();
                for (const OwnedRange& range : ranges)
                    EXPECT_TRUE(at::equal(
                        test::part_of(host, range),
                        test::part_of(values_of.at(static_cast<std::size_t>(range.owner)), range)))
                        << type << " from " << range.begin << " of rank " << range.owner;
            }
        }
}

// The last rank comes only when the others have gone on.
TEST_P(MixedRangesTest, FollowOneAnotherInOrderAndWaitForNoOtherRank) {
    const auto communicator = make(GetParam());
    std::vector<at::Tensor> buckets;
    std::vector<std::unique_ptr<Work>> works;
    const auto start_all = [&] {
        for (int i = 1; i <= 15; ++i) {
            const std::int64_t count = i % 4 == 0 ? 11 : 900 * i;
            const auto cuts = test::cuts_of(count, world_.size());
            const auto& ranges = cuts[static_cast<std::size_t>(i) % cuts.size()];
            buckets.push_back(at::full({count}, i, at::kFloat).to(communicator->device()));
            works.push_back(communicator->start_reduce_scatter_sum(buckets.back(), ranges));
            works.push_back(communicator->start_all_gather(buckets.back(), ranges));
            works.push_back(communicator->start_all_reduce_sum(buckets.back()));
        }
    };

    if (!is_last())
        start_all();
    world_.barrier();
    if (is_last())
        start_all();
    works.back()->wait_then([] {});

    for (std::size_t i = 0; i < buckets.size(); ++i) {
        const auto sum = static_cast<float>(i + 1) * static_cast<float>(world_.size()) *
                         static_cast<float>(world_.size());
        EXPECT_TRUE((buckets[i].cpu() == sum).all().item<bool>()) << i;
    }
    EXPECT_TRUE(
        std::all_of(works.begin(), works.end(), [](const auto& work) { return work->done(); }));
}

TEST_P(MixedRangesTest, ComeAfterTheStreamsWorkAndBeforeWhatFollows) {
    const auto communicator = make(GetParam());
    const auto all = static_cast<float>(world_.size());
    for (const auto& ranges : test::cuts_of(1000, world_.size())) {
        const at::Tensor values =
            at::empty({1000}, at::TensorOptions(at::kFloat).device(communicator->device()));
        auto* const data = values.mutable_data_ptr<float>();
        const auto fill = [data] {
            std::this_thread::sleep_for(5ms);
            std::fill_n(data, 1000, 1.0F);
        };
        if (values.is_cuda())
            stand_in::launch(c10::cuda::getCurrentCUDAStream(values.device().index()).stream(),
                             "fill",
                             {stand_in::writes(data, 1000)},
                             fill);
        else
            fill();

        communicator->start_reduce_scatter_sum(values, ranges)->wait_then([&] { values.mul_(2); });
        at::Tensor after;
        communicator->start_all_gather(values, ranges)->wait_then([&] { after = values + 1; });

        EXPECT_TRUE(after.cpu().equal(at::full({1000}, 2 * all + 1)));
    }
}

TEST_P(MixedRangesTest, ARankThatDoesNotComeEndsTheOthersAtTheirDeadline) {
    const std::vector<OwnedRange> ranges = test::cuts_of(1000, world_.size()).back();
    const auto expect_errors = [&](int absent, auto start) {
        const auto communicator = make(GetParam(), {.deadline = 1s, .largest_bytes = 1 << 20});
        if (world_.rank() != absent) {
            const at::Tensor values = at::ones({1000}).to(communicator->device());

            EXPECT_THROW(((*communicator).*start)(values, ranges)->wait(), CommError);
            EXPECT_THROW(((*communicator).*start)(values, ranges)->wait(), CommError);
        }
        world_.barrier();
    };

    expect_errors(0, &Communicator::start_reduce_scatter_sum);
    expect_errors(world_.size() - 1, &Communicator::start_all_gather);
}

// What this rank asks NCCL for.
class MixedCallsTest : public MixedRangesTest {
protected:
    static long all_calls() {
        long all = 0;
        for (const char* kind :
             {"a reduction", "an all-reduce", "a broadcast", "a reduce-scatter", "an all-gather"})
            all += stand_in::calls(kind);
        return all;
    }
};

TEST_F(MixedCallsTest, AGroupOfOneAsksNcclForNothing) {
    const auto communicator = make({"OneGpuForAll", {0, 0, 0, 0}});
    const auto ranges = test::cuts_of(1000, world_.size()).back();
    const at::Tensor values = at::ones({1000}).to(communicator->device());
    const long before = all_calls();

    communicator->start_reduce_scatter_sum(values, ranges)->wait();
    communicator->start_all_gather(values, ranges)->wait();

    EXPECT_EQ(all_calls(), before);
    EXPECT_TRUE((values.cpu() == world_.size()).all().item<bool>());
}

// A CPU, and a group of the other ranks.
TEST_F(MixedCallsTest, AGroupsRanksAskForTheFewestCalls) {
    const auto communicator = make({"ACpuBeforeGpus", {cpu, 0, 1, 2}});
    const bool asks = world_.size() > 2 && world_.rank() != 0;
    std::vector<OwnedRange> ranges;
    for (int rank = 0; rank < world_.size(); ++rank)
        ranges.push_back({rank, rank * 10, 10});
    const at::Tensor values =
        at::ones({world_.size() * std::int64_t{10}}).to(communicator->device());

    const long before_sums = all_calls();
    communicator->start_reduce_scatter_sum(values, ranges)->wait();
    // A reduction to the speaker, and what it passes on: all members' parts, which are neighbours.
    EXPECT_EQ(all_calls() - before_sums, asks ? 2 : 0);

    const long before_copies = all_calls();
    const long gathers = stand_in::calls("an all-gather");
    communicator->start_all_gather(values, ranges)->wait();
    // The group's parts are even; the speaker passes on that of the CPU.
    EXPECT_EQ(all_calls() - before_copies, asks ? 2 : 0);
    EXPECT_EQ(stand_in::calls("an all-gather") - gathers, asks ? 1 : 0);

    EXPECT_TRUE((values.cpu() == world_.size()).all().item<bool>());
}

}  // namespace
}  // namespace hetseq
