#include "hetseq/balance/allocate.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using Allocation = std::vector<std::int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::int64_t sum(const Allocation& allocation) {
    return std::accumulate(allocation.begin(), allocation.end(), std::int64_t{0});
}

// The least makespan of all cuts; infinite where the ranks do not take the units.
double brute_force(std::span<const StepCost> costs, std::int64_t units) {
    if (costs.empty())
        return units == 0 ? 0 : infinity;
    const StepCost& first = costs.front();
    const std::int64_t most = first.micro_batch > 0 ? std::min(first.max_units, units) : 0;
    double best = infinity;
    for (std::int64_t taken = 0; taken <= most; ++taken)
        best = std::min(
            best, std::max(first.time_ms(taken), brute_force(costs.subspan(1), units - taken)));
    return best;
}

// Small random clusters: start costs, staircases, limits, ranks without work, scales, tables.
class RandomCluster {
public:
    explicit RandomCluster(unsigned seed) : random_{seed} {}

    int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    std::vector<StepCost> costs(int most_ranks) {
        std::vector<StepCost> costs(static_cast<std::size_t>(draw(1, most_ranks)));
        for (StepCost& cost : costs) {
            cost = {.start_ms = 0.5 * draw(0, 8),
                    .micro_batch_ms = 0.5 * draw(0, 6),
                    .unit_ms = 0.25 * draw(0, 12),
                    .micro_batch = draw(0, 5),
                    .max_units = draw(1, 12),
                    .scale = draw(0, 2) == 0 ? 0.3 * draw(1, 10) : 1,
                    .update_ms = draw(0, 2) == 0 ? 0.5 * draw(1, 6) : 0};
            if (draw(0, 2) == 0)
                cost.table = StepTable({{0, 0.5 * draw(0, 4)},
                                        {draw(1, 3), 0.5 * draw(0, 8)},
                                        {draw(4, 6), 0.5 * draw(0, 20)}});
        }
        return costs;
    }

private:
    std::mt19937 random_;
};

TEST(AllocateTest, DeclaredCapacitiesGiveProportionalShares) {
    EXPECT_THAT(allocate(declared_costs(Allocation{3, 1, 0}), 8), testing::ElementsAre(6, 2, 0));
    EXPECT_THAT(allocate(declared_costs(Allocation{64, 16, 16}), 96),
                testing::ElementsAre(64, 16, 16));
}

TEST(AllocateTest, EqualCostsGiveEvenShares) {
    EXPECT_THAT(allocate(equal_costs(Allocation{8, 1, 0, 8}), 7), testing::ElementsAre(3, 2, 0, 2));
}

TEST(AllocateTest, SlowRankMayGetNothing) {
    const std::vector<StepCost> costs{{.unit_ms = 1, .micro_batch = 8},
                                      {.start_ms = 100, .unit_ms = 1, .micro_batch = 8}};

    EXPECT_THAT(allocate(costs, 20), testing::ElementsAre(20, 0));
}

TEST(AllocateTest, EqualsBruteForce) {
    RandomCluster cluster(7);

    for (int instance = 0; instance < 5000; ++instance) {
        const std::vector<StepCost> costs = cluster.costs(4);
        const std::int64_t units = cluster.draw(1, 10);
        const double best = brute_force(costs, units);
        if (best == infinity) {
            EXPECT_THROW(allocate(costs, units), Error);
            continue;
        }

        const Allocation allocation = allocate(costs, units);

        EXPECT_EQ(sum(allocation), units);
        EXPECT_DOUBLE_EQ(makespan_ms(costs, allocation), best) << "instance " << instance;
        EXPECT_LE(bound_ms(costs, units), best * (1 + 1e-12)) << "instance " << instance;
    }
}

TEST(AllocateTest, NothingToDoTakesNoTime) {
    const std::vector<StepCost> costs = declared_costs(Allocation{5, 3});

    EXPECT_THAT(allocate(costs, 0), testing::ElementsAre(0, 0));
    EXPECT_DOUBLE_EQ(makespan_ms(costs, Allocation{0, 0}), 0);
}

// 4,096 ranks, each with its own speed, of four device classes.
struct LargeCluster {
    std::vector<StepCost> costs;
    std::int64_t units = 65536;

    LargeCluster() : costs(4096) {
        std::mt19937 random(1);
        std::lognormal_distribution<double> spread(0, 0.05);
        for (std::size_t r = 0; r < costs.size(); ++r) {
            const auto device = static_cast<double>(1 << r % 4);
            costs[r] = {.start_ms = 3,
                        .micro_batch_ms = 2 * device,
                        .unit_ms = 0.5 * device,
                        .micro_batch = 8,
                        .scale = spread(random)};
        }
    }
};

// Prints the time; asserts what no other machine could find otherwise.
TEST(AllocateTest, FourThousandRanks) {
    const LargeCluster cluster;

    const auto begin = std::chrono::steady_clock::now();
    const Allocation allocation = allocate(cluster.costs, cluster.units);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;

    std::cout << "4096 ranks: " << took.count() << " ms\n";
    const double best = makespan_ms(cluster.costs, allocation);
    std::int64_t sooner = 0;  // units that the ranks could finish in a shorter time
    for (const StepCost& cost : cluster.costs)
        sooner += cost.units_within(best * (1 - 1e-12), cluster.units);
    EXPECT_EQ(sum(allocation), cluster.units);
    EXPECT_LT(sooner, cluster.units);
}

TEST(AllocateTest, NoCapacityIsAnError) {
    EXPECT_THROW(allocate(declared_costs(Allocation{0, 0}), 1), Error);
    EXPECT_THAT(allocate(declared_costs(Allocation{0, 0}), 0), testing::ElementsAre(0, 0));
}

TEST(BoundTest, IsTheFractionalOptimum) {
    const std::vector<StepCost> costs{{.unit_ms = 1, .micro_batch = 4},
                                      {.start_ms = 2, .unit_ms = 0.5, .micro_batch = 4}};

    // T + 2 (T - 2) = 11
    EXPECT_DOUBLE_EQ(bound_ms(costs, 11), 5);
    // The second rank starts too late to help.
    EXPECT_DOUBLE_EQ(bound_ms(costs, 2), 2);
    EXPECT_DOUBLE_EQ(bound_ms(costs, 0), 0);
}

TEST(BoundTest, FollowsTables) {
    // 2 units until 2 ms, 4 at once there, then one each 2 ms, and again beyond 10 units; beside
    // them a unit a millisecond.
    const std::vector<StepCost> costs{{.scale = 2, .table = StepTable({{2, 1}, {6, 1}, {10, 5}})},
                                      {.unit_ms = 1}};

    EXPECT_DOUBLE_EQ(bound_ms(costs, 3), 1.5);
    EXPECT_DOUBLE_EQ(bound_ms(costs, 7), 2);
    EXPECT_DOUBLE_EQ(bound_ms(costs, 11), 4);
    EXPECT_DOUBLE_EQ(bound_ms(costs, 23), 11.5);
    EXPECT_DOUBLE_EQ(bound_ms(costs, 25), 12);
}

TEST(BoundTest, IsInfiniteWithoutRanks) {
    EXPECT_EQ(bound_ms(declared_costs(Allocation{0}), 1), infinity);
}

}  // namespace
}  // namespace hetseq
