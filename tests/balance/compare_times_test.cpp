#include "hetseq/balance/compare_times.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

TEST(CompareTimesTest, TakesReductionsAmongAllRanksAlone) {
    const std::vector<StepCost> costs{{.unit_ms = 1}, {.unit_ms = 1}, {.unit_ms = 2}};

    const ComparedTimes times = compare_times(costs, {true, true, false}, 100, 7);

    EXPECT_DOUBLE_EQ(times.all_ms, 40 + 7);
    EXPECT_DOUBLE_EQ(times.some_ms, 50);
}

TEST(CompareTimesTest, ARankThatCannotWorkChangesNothingButTheReductions) {
    const std::vector<StepCost> costs{{.unit_ms = 3}, {.micro_batch = 0}};

    const ComparedTimes times = compare_times(costs, {true, false}, 10, 1);

    EXPECT_DOUBLE_EQ(times.all_ms, 31);
    EXPECT_DOUBLE_EQ(times.some_ms, 30);
}

TEST(CompareTimesTest, RanksThatCannotDoTheWorkAloneAreNeverFaster) {
    const std::vector<StepCost> costs{{.micro_batch = 0}, {.unit_ms = 1, .max_units = 5}, {}};

    EXPECT_GT(compare_times(costs, {true, false, false}, 10, 1).some_ms, 1e300);
    EXPECT_GT(compare_times(costs, {true, true, false}, 10, 1).some_ms, 1e300);
}

}  // namespace
}  // namespace hetseq
