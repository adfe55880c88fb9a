#include "hetseq/balance/trust_region.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "hetseq/balance/allocate.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using Units = std::vector<std::int64_t>;

std::vector<StepCost> speeds(const std::vector<double>& unit_ms) {
    std::vector<StepCost> costs;
    for (const double ms : unit_ms)
        costs.push_back({.unit_ms = ms, .micro_batch = 8});
    return costs;
}

Units step(const std::vector<StepCost>& costs, const Units& current) {
    const auto units = std::accumulate(current.begin(), current.end(), std::int64_t{0});
    return step_towards(allocate(costs, units), current, costs, 2);
}

TEST(TrustRegionTest, ANearOptimumIsReachedAtOnce) {
    EXPECT_THAT(step(speeds({1, 2}), {60, 60}), testing::ElementsAre(80, 40));
}

TEST(TrustRegionTest, AShareAtMostHalves) {
    EXPECT_THAT(step(speeds({1, 1 / 0.3}), {128, 128}), testing::ElementsAre(192, 64));
}

TEST(TrustRegionTest, AShareAtMostDoubles) {
    EXPECT_THAT(step(speeds({1, 1, 1}), {120, 120, 21}), testing::ElementsAre(110, 109, 42));
}

TEST(TrustRegionTest, WhereAStepLeavesTwiceTheTimeItGoesAllTheWay) {
    // Half its share would still take 640 ms; the optimum takes 233.
    EXPECT_THAT(step(speeds({1, 10}), {128, 128}), testing::ElementsAre(233, 23));
}

TEST(TrustRegionTest, ARankThatIsNotWorthItLosesAllAtOnce) {
    std::vector<StepCost> costs = speeds({1, 1});
    costs[1].start_ms = 70;

    EXPECT_THAT(step(costs, {32, 32}), testing::ElementsAre(64, 0));
}

TEST(TrustRegionTest, ARankWithoutWorkStartsWithOneMicroBatch) {
    EXPECT_THAT(step(speeds({1, 1}), {20, 0}), testing::ElementsAre(12, 8));
    EXPECT_THAT(step(speeds({1, 0.5}), {20, 0}), testing::ElementsAre(12, 8));
}

TEST(TrustRegionTest, LimitsOfMemoryHold) {
    std::vector<StepCost> costs = speeds({1, 0.1});
    costs[1].max_units = 40;

    EXPECT_THAT(step(costs, {64, 32}), testing::ElementsAre(56, 40));
    // A rank may have more than it now can take.
    EXPECT_THAT(step(costs, {10, 90}), testing::ElementsAre(60, 40));
}

// The best makespan with `low` <= units <= `high`, tried one by one.
double brute_force(std::span<const StepCost> costs,
                   std::span<const std::int64_t> current,
                   std::int64_t units) {
    if (costs.empty())
        return units == 0 ? 0 : std::numeric_limits<double>::infinity();
    double best = std::numeric_limits<double>::infinity();
    for (std::int64_t taken = current[0] / 2; taken <= std::min(2 * current[0], units); ++taken)
        best = std::min(best,
                        std::max(costs[0].time_ms(taken),
                                 brute_force(costs.subspan(1), current.subspan(1), units - taken)));
    return best;
}

TEST(TrustRegionTest, EqualsBruteForce) {
    std::mt19937 random(6);
    const auto draw = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    int limited = 0;

    for (int instance = 0; instance < 2000; ++instance) {
        Units current;
        std::vector<StepCost> costs;
        for (int r = draw(2, 4); r > 0; --r) {
            current.push_back(draw(1, 7));
            costs.push_back({.start_ms = 0.5 * draw(0, 2),
                             .micro_batch_ms = 0.5 * draw(0, 2),
                             .unit_ms = 0.25 * draw(1, 12),
                             .micro_batch = draw(1, 5)});
        }
        const auto units = std::accumulate(current.begin(), current.end(), std::int64_t{0});
        const Units best = allocate(costs, units);

        const Units next = step_towards(best, current, costs, 2);

        EXPECT_EQ(std::accumulate(next.begin(), next.end(), std::int64_t{0}), units);
        if (next == best || std::count(best.begin(), best.end(), 0) > 0)
            continue;
        ++limited;
        EXPECT_DOUBLE_EQ(makespan_ms(costs, next), brute_force(costs, current, units)) << instance;
    }
    EXPECT_GT(limited, 100);
}

}  // namespace
}  // namespace hetseq
