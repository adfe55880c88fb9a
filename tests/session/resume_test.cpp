#include "hetseq/session/resume.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/session/options/merged_values.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

// After 7 updates of 2 an epoch.
ResumePoint other_run() {
    ResumePoint point;
    point.is_own = false;
    point.state.progress = {.updates = 7,
                            .epochs = 3,
                            .validations_since_best = 4,
                            .schedule_origin = 1,
                            .schedule_epochs = 2};
    return point;
}

TEST(ContinuedProgressTest, AnotherScheduleBeginsWithItsFirstUpdateAndEpoch) {
    Options options;
    options.reset_lr_scheduler = true;

    const TrainingProgress progress = continued_progress(options, other_run());

    EXPECT_EQ(progress.schedule_origin, 7);
    EXPECT_EQ(progress.schedule_epochs, 0);
    EXPECT_EQ(progress.epochs, 3);
}

TEST(ContinuedProgressTest, AnotherPlaceInTheDataLeavesTheScheduleAlone) {
    Options options;
    options.reset_position = true;

    const TrainingProgress progress = continued_progress(options, other_run());

    EXPECT_EQ(progress.order_origin, 7);
    EXPECT_EQ(progress.epochs, 0);
    EXPECT_EQ(progress.schedule_origin, 1);
    EXPECT_EQ(progress.schedule_epochs, 2);
}

TEST(ContinuedProgressTest, PatienceCountsAnewByAnotherMeasure) {
    ResumePoint point = other_run();
    point.is_own = true;
    Options options;
    EXPECT_EQ(continued_progress(options, point).validations_since_best, 4);
    options.trainer.best_by = {"accuracy", Direction::max};
    EXPECT_EQ(continued_progress(options, point).validations_since_best, 0);
    point.state.run.options["best-by"] = "accuracy:max";
    EXPECT_EQ(continued_progress(options, point).validations_since_best, 4);
}

// Runs of earlier versions lack options of later ones.
TEST(SameRunTest, AnOptionThatTheCheckpointLacksDiffersWhereItIsGiven) {
    OptionValues values = merged_values({{{"task", "mnist"}}, {}}, builtin_parts());
    ResumePoint point;
    point.folder = "run/checkpoints/update-7";
    for (const OptionSpec& spec : option_table())
        if (spec.name != "data-weights")
            point.state.run.options[spec.name] = values.at(spec.name);
    EXPECT_NO_THROW(check_same_run(SettledOptions(values), point));

    values.at("data-weights") = "2,1";
    try {
        check_same_run(SettledOptions(values), point);
        FAIL() << "other weights are taken";
    } catch (const BadConfig& error) {
        EXPECT_THAT(
            error.what(),
            HasSubstr("--data-weights is '2,1', run/checkpoints/update-7 was trained with ''"));
    }
}

}  // namespace
}  // namespace hetseq
