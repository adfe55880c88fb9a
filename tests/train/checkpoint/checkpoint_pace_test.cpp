#include "hetseq/train/checkpoint/checkpoint_pace.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

constexpr double day_s = 86400;

// One checkpoint, before and beside updates of these times.
CheckpointPace after_one(double waited_s, double before_s, double beside_s, double writing_s) {
    CheckpointPace pace{{}};
    for (int update = 0; update < 100; ++update)
        pace.updated(before_s);
    pace.began(waited_s);
    for (double passed_s = 0; passed_s < writing_s; passed_s += beside_s)
        pace.updated(beside_s);
    pace.ended(writing_s);
    return pace;
}

TEST(CheckpointPaceTest, TheFirstComesSoonAfterTheStart) {
    EXPECT_EQ(CheckpointPace{{}}.interval_s(), 10);
    EXPECT_EQ((CheckpointPace{{.has_failed = true}}.interval_s()), 2);  // it may not live so long
    EXPECT_FALSE(CheckpointPace{{}}.cost());
}

TEST(CheckpointPaceTest, TheCostIsWhatTrainingWaitedAndHowMuchSlowerItWas) {
    const auto cost = after_one(0.5, 0.1, 0.125, 1).cost();

    ASSERT_TRUE(cost);
    EXPECT_NEAR(cost->training_s, 0.5 + 8 * 0.025, 1e-9);
    EXPECT_EQ(cost->writing_s, 1);
    EXPECT_NEAR(after_one(0.5, 0.125, 0.1, 1).cost()->training_s, 0.5, 1e-9);  // no gain
}

TEST(CheckpointPaceTest, TheIntervalLosesLeast) {
    EXPECT_NEAR(after_one(0.1, 0.1, 0.1, 1).interval_s(), std::sqrt(2 * 0.1 * day_s), 1e-6);
    EXPECT_EQ(after_one(0, 0.1, 0.1, 0.01).interval_s(), 2);
    EXPECT_EQ(after_one(3, 0.1, 0.1, 4).interval_s(), 600);
    EXPECT_EQ(after_one(0, 0.1, 0.1, 180).interval_s(), 900);  // a fifth of the disk's time
}

TEST(CheckpointPaceTest, BeforeAnyFailureCheckpointsTakeAHundredthAtTheMost) {
    const CheckpointCost known{.training_s = 0.2, .writing_s = 0.5};

    EXPECT_NEAR(
        (CheckpointPace{{.between_failures_s = 60, .known = known}}.interval_s()), 20, 1e-9);
    EXPECT_NEAR((CheckpointPace{{.between_failures_s = 60, .has_failed = true, .known = known}}
                     .interval_s()),
                std::sqrt(2 * 0.2 * 60),
                1e-9);
    EXPECT_NEAR((CheckpointPace{{.between_failures_s = 3600, .known = known}}.interval_s()),
                std::sqrt(2 * 0.2 * 3600),
                1e-9);
}

TEST(CheckpointPaceTest, NoneBeginsWhileOneIsUnderWay) {
    CheckpointPace pace{{}};
    pace.began(0);
    EXPECT_TRUE(std::isinf(pace.interval_s()));
    EXPECT_TRUE(pace.is_saving());
    pace.ended(0.1);
    EXPECT_FALSE(std::isinf(pace.interval_s()));
}

TEST(CheckpointPaceTest, AfterAFailureTheNextOneWaits) {
    CheckpointPace pace = after_one(0, 0.1, 0.1, 0.01);
    pace.began(0);
    pace.failed();
    EXPECT_EQ(pace.interval_s(), 60);
    EXPECT_EQ(pace.cost()->writing_s, 0.01);  // what failed tells nothing
    pace.began(0);
    pace.ended(0.01);
    EXPECT_EQ(pace.interval_s(), 2);
}

TEST(CheckpointPaceTest, AUsersIntervalHoldsWhateverItCosts) {
    CheckpointPace pace{{.every_s = 7}};
    EXPECT_EQ(pace.interval_s(), 7);
    pace.began(100);
    EXPECT_EQ(pace.interval_s(), 7);
    EXPECT_TRUE(std::isinf(CheckpointPace{{.every_s = 0}}.interval_s()));
}

}  // namespace
}  // namespace hetseq
