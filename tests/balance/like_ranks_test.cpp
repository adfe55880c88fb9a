#include "hetseq/balance/like_ranks.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

StepCost cost(double unit_ms, std::int64_t micro_batch = 8) {
    return {.unit_ms = unit_ms, .micro_batch = micro_batch};
}

std::vector<double> unit_times(const std::vector<StepCost>& costs) {
    std::vector<double> times;
    for (const StepCost& one : costs)
        times.push_back(one.unit_ms);
    return times;
}

TEST(PoolLikeRanksTest, TwoLikeRanksTakeTheFastersCost) {
    const std::vector<StepCost> costs{cost(2), cost(1)};

    EXPECT_EQ(unit_times(pool_like_ranks(costs, std::vector{0, 0})), (std::vector<double>{1, 1}));
}

TEST(PoolLikeRanksTest, ManyTakeTheMedianOfTheirKind) {
    const std::vector<StepCost> costs{cost(3), cost(9), cost(1.5), cost(1), cost(2)};

    EXPECT_EQ(unit_times(pool_like_ranks(costs, std::vector{0, 1, 0, 0, 0})),
              (std::vector<double>{1.5, 9, 1.5, 1.5, 1.5}));
}

TEST(PoolLikeRanksTest, OtherMicroBatchesAreOtherRanks) {
    const std::vector<StepCost> costs{cost(2, 8), cost(1, 4), cost(5, 0)};

    EXPECT_EQ(unit_times(pool_like_ranks(costs, std::vector{0, 0, 0})),
              (std::vector<double>{2, 1, 5}));
}

}  // namespace
}  // namespace hetseq
