#include "hetseq/session/run_length.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/session/options/options.hpp"
#include "hetseq/session/resume.hpp"

namespace hetseq {
namespace {

StartingPoint continued_at(std::int64_t updates) {
    StartingPoint start;
    start.progress.updates = updates;
    start.continued = RunIdentity{.schedule_updates = 40};
    return start;
}

TEST(RunLengthTest, IsRefusedWhereNothingSaysIt) {
    EXPECT_THROW(run_length(Options{}, 10, {}), BadConfig);
}

TEST(RunLengthTest, IsTheShorterOfUpdatesAndEpochs) {
    Options options;
    options.max_epoch = 3;
    EXPECT_EQ(run_length(options, 10, {}).updates, 30);
    options.max_update = 25;
    EXPECT_EQ(run_length(options, 10, {}).updates, 25);
    options.max_update = 35;
    EXPECT_EQ(run_length(options, 10, {}).updates, 30);
}

TEST(RunLengthTest, EpochsCountFromWhereTheOrderOfTheDataBegan) {
    Options options;
    options.max_epoch = 3;
    StartingPoint start = continued_at(7);
    start.progress.order_origin = 7;

    EXPECT_EQ(run_length(options, 10, start).updates, 37);
}

TEST(RunLengthTest, AScheduleSpansTheRunUnlessItIsGiven) {
    Options options;
    options.max_update = 50;
    EXPECT_EQ(run_length(options, 10, {}).schedule_updates, 50);
    options.parts.schedule.total_updates = 80;
    EXPECT_EQ(run_length(options, 10, {}).schedule_updates, 80);
}

TEST(RunLengthTest, NamesTheOptionThatEndsTheSchedule) {
    Options options;
    options.max_update = 50;
    options.max_epoch = 7;
    EXPECT_EQ(run_length(options, 10, {}).schedule_ended_by, "--max-update 50");
    options.max_epoch = 3;
    EXPECT_EQ(run_length(options, 10, {}).schedule_ended_by, "--max-epoch 3");
    options.parts.schedule.total_updates = 80;
    EXPECT_EQ(run_length(options, 10, {}).schedule_ended_by, "--total-num-update 80");
}

TEST(RunLengthTest, AContinuedScheduleKeepsItsSpan) {
    Options options;
    options.max_update = 50;

    EXPECT_EQ(run_length(options, 10, continued_at(7)).schedule_updates, 40);
}

TEST(RunLengthTest, AScheduleThatStartsAnewSpansWhatIsLeft) {
    Options options;
    options.max_update = 50;
    StartingPoint start = continued_at(7);
    start.progress.schedule_origin = 7;

    EXPECT_EQ(run_length(options, 10, start).schedule_updates, 43);
}

TEST(RunLengthTest, ARunIsFinishedByUpdatesOrByPatience) {
    Options options;
    options.trainer.patience = 2;
    TrainingProgress progress;
    progress.updates = 9;
    EXPECT_FALSE(is_finished(options, {.updates = 10}, progress));
    progress.validations_since_best = 2;
    EXPECT_TRUE(is_finished(options, {.updates = 10}, progress));
    options.trainer.patience = 0;
    EXPECT_FALSE(is_finished(options, {.updates = 10}, progress));
    progress.updates = 10;
    EXPECT_TRUE(is_finished(options, {.updates = 10}, progress));
}

}  // namespace
}  // namespace hetseq
