#include "hetseq/balance/allocate.hpp"

#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using Allocation = std::vector<std::int64_t>;

// The best makespan over every way to cut `units`, tried one by one.
double brute_force(std::span<const StepCost> costs, std::int64_t units) {
    const StepCost& first = costs.front();
    const std::int64_t most = first.micro_batch > 0 ? std::min(first.max_units, units) : 0;
    if (costs.size() == 1)
        return units <= most ? first.time_ms(units) : std::numeric_limits<double>::infinity();
    double best = std::numeric_limits<double>::infinity();
    for (std::int64_t taken = 0; taken <= most; ++taken)
        best = std::min(
            best, std::max(first.time_ms(taken), brute_force(costs.subspan(1), units - taken)));
    return best;
}

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
    std::mt19937 random(7);
    const auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };

    for (int instance = 0; instance < 3000; ++instance) {
        std::vector<StepCost> costs(static_cast<std::size_t>(draw(1, 4)));
        for (StepCost& cost : costs)
            cost = {.start_ms = 0.5 * draw(0, 8),
                    .micro_batch_ms = 0.5 * draw(0, 6),
                    .unit_ms = 0.25 * draw(1, 12),
                    .micro_batch = draw(0, 5),
                    .max_units = draw(1, 12)};
        const std::int64_t units = draw(1, 10);
        const double best = brute_force(costs, units);
        if (best == std::numeric_limits<double>::infinity()) {
            EXPECT_THROW(allocate(costs, units), Error);
            continue;
        }

        const Allocation allocation = allocate(costs, units);

        EXPECT_EQ(std::accumulate(allocation.begin(), allocation.end(), std::int64_t{0}), units);
        EXPECT_DOUBLE_EQ(makespan_ms(costs, allocation), best) << "instance " << instance;
        EXPECT_LE(bound_ms(costs, units), best * (1 + 1e-12)) << "instance " << instance;
    }
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
}

}  // namespace
}  // namespace hetseq
