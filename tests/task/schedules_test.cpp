#include <gtest/gtest.h>

#include "hetseq/task/parts.hpp"

namespace hetseq {
namespace {

// Of a run of 100 updates, with --lr 2.
Schedule schedule(const std::string& name, const std::map<std::string, std::string>& own) {
    PartOptions options;
    options.schedule.lr = 2;
    options.schedule.total_updates = 100;
    options.own = own;
    return builtin_parts().schedules.get(name)(options);
}

// Expected: the formulas of hetseq/optim/schedule.hpp.
TEST(SchedulesTest, EachReadsItsOwnOptions) {
    EXPECT_DOUBLE_EQ(schedule("polynomial_decay", {{"power", "2"}})(50, 0), 2 * 0.25);
    EXPECT_DOUBLE_EQ(schedule("polynomial_decay", {{"end-learning-rate", "1"}})(100, 0), 1);
    EXPECT_DOUBLE_EQ(schedule("cosine", {{"end-learning-rate", "1"}})(50, 0), 1.5);
    EXPECT_DOUBLE_EQ(schedule("exponential", {{"lr-shrink", "0.5"}})(0, 3), 0.25);
    EXPECT_DOUBLE_EQ(schedule("step", {{"lr-shrink", "0.5"}, {"lr-step-epochs", "3"}})(0, 6), 0.5);
}

TEST(SchedulesTest, DefaultsAreThoseOfTheTable) {
    EXPECT_DOUBLE_EQ(schedule("polynomial_decay", {})(50, 0), 1);
    EXPECT_DOUBLE_EQ(schedule("cosine", {})(100, 0), 0);
    EXPECT_DOUBLE_EQ(schedule("step", {})(0, 2), 2 * 0.7 * 0.7);
    EXPECT_DOUBLE_EQ(schedule("fixed", {})(50, 3), 2);
    EXPECT_DOUBLE_EQ(schedule("inverse_sqrt", {})(16, 0), 0.5);
}

}  // namespace
}  // namespace hetseq
