#include "hetseq/train/shares/share_plan.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include "test_world.hpp"

namespace hetseq {
namespace {

// 3, 1, 0, 2 for as many ranks as there are.
std::vector<std::int64_t> capacities(const HostComm& world) {
    const std::vector<std::int64_t> all{3, 1, 0, 2};
    return {all.begin(), all.begin() + world.size()};
}

TEST(SharePlanTest, DeclaredSharesAreProportionalToCapacities) {
    const HostComm world = test::world();
    SharePlan shares(world, "declared", capacities(world));
    const std::int64_t total = shares.total_capacity();

    const auto& allocation = shares.allocation(2 * total);

    for (std::size_t r = 0; r < allocation.size(); ++r)
        EXPECT_EQ(allocation[r], 2 * capacities(world)[r]);
}

TEST(SharePlanTest, SlicesPartitionTheBatchInRankOrder) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", capacities(world));

    for (std::int64_t size : {1, 2, 7, 100}) {
        std::int64_t next = 30;
        for (const Slice& slice : shares.cut({.begin = 30, .end = 30 + size}).slices) {
            EXPECT_EQ(slice.begin, next);
            next = slice.end;
        }
        EXPECT_EQ(next, 30 + size);
    }
}

TEST(SharePlanTest, AChangedCutHoldsInProportionForOtherSizes) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", capacities(world));
    std::vector<std::int64_t> cut(static_cast<std::size_t>(world.size()), 10);
    cut.front() = 40;
    const std::int64_t sum = 40 + 10 * (world.size() - 1);

    shares.change(cut);

    EXPECT_EQ(shares.allocation(sum), cut);
    const auto& half = shares.allocation(sum / 2);
    EXPECT_EQ(half.front(), 20);
    EXPECT_EQ(std::accumulate(half.begin(), half.end(), std::int64_t{0}), sum / 2);
    for (const std::int64_t size : {1, 3, 7}) {
        const auto& few = shares.allocation(size);
        EXPECT_EQ(std::accumulate(few.begin(), few.end(), std::int64_t{0}), size);
    }
}

// Products of the units and the shares have up to 24 digits.
TEST(SharePlanTest, LargeBatchesAreCutInProportionWithoutOverflow) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", std::vector<std::int64_t>(std::size_t(world.size()), 1));
    constexpr std::int64_t share = 500'000'000'000;
    const std::int64_t units = 2 * share * world.size() + 1;

    shares.change(std::vector<std::int64_t>(std::size_t(world.size()), share));

    std::vector<std::int64_t> expected(std::size_t(world.size()), 2 * share);
    ++expected.front();
    EXPECT_EQ(shares.allocation(units), expected);
}

// Sums of the corpus that a rank rounds otherwise give it other numbers.
TEST(SharePlanTest, RaggedBatchesAreCutByRankZerosNumbersOnAllRanks) {
    const HostComm world = test::world();
    SharePlan shares(world, "equal", std::vector<std::int64_t>(std::size_t(world.size()), 1));

    shares.set_ragged({.cost = {0.5 + world.rank()}, .full_batch = 100 + world.rank()});

    EXPECT_EQ(shares.ragged()->cost.square, 0.5);
    EXPECT_EQ(shares.ragged()->full_batch, 100);
}

TEST(SharePlanTest, NoCapacityAtAllIsAnError) {
    const HostComm world = test::world();

    EXPECT_THROW(
        SharePlan(
            world, "declared", std::vector<std::int64_t>(static_cast<std::size_t>(world.size()))),
        Error);
}

}  // namespace
}  // namespace hetseq
