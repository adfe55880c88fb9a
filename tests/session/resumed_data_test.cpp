#include "hetseq/session/resumed_data.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

CorpusIdentity identity(const std::string& checksum) {
    return {{"images (28 x 28)"}, {{"train.h5", 1000, 600, {3, 14}, checksum}}};
}

RunIdentity run_with(const std::string& checksum) {
    return {.options = {},
            .samples = 600,
            .corpus = "images (28, 28)",
            .data = identity(checksum),
            .valid_data = identity(checksum)};
}

ResumePoint point_with(const RunIdentity& run, bool is_own = true) {
    return {"RUN/checkpoints/update-00000010", {run, {}}, is_own};
}

std::string error_of(const RunIdentity& own, const Options& options, const ResumePoint& point) {
    try {
        check_same_data(own, options, point);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::config);
        return error.what();
    }
    return "";
}

TEST(ResumedDataTest, OtherRowsAreRefusedByName) {
    EXPECT_THAT(error_of(run_with("aa"), {}, point_with(run_with("aa"))), IsEmpty());
    EXPECT_THAT(error_of(run_with("aa"), {}, point_with(run_with("bb"))),
                AllOf(HasSubstr("--data is not what RUN/checkpoints/update-00000010 was trained"),
                      HasSubstr("shard train.h5 holds other values"),
                      HasSubstr("--reset-position")));
}

TEST(ResumedDataTest, AnotherRunMayResetItsPosition) {
    Options resets;
    resets.reset_position = true;

    EXPECT_THAT(error_of(run_with("aa"), {}, point_with(run_with("bb"), false)), Not(IsEmpty()));
    EXPECT_THAT(error_of(run_with("aa"), resets, point_with(run_with("bb"), false)), IsEmpty());
}

TEST(ResumedDataTest, ACheckpointWithoutAnIdentityIsTakenWithANote) {
    RunIdentity old = run_with("aa");
    old.data.reset();
    old.valid_data.reset();

    EXPECT_THAT(error_of(run_with("aa"), {}, point_with(old)), IsEmpty());
    EXPECT_THAT(note_on_data(run_with("aa"), {}, point_with(old)), HasSubstr("older version"));
    EXPECT_THAT(note_on_data(run_with("aa"), {}, point_with(run_with("aa"))), IsEmpty());
    old.samples = 700;
    EXPECT_THAT(error_of(run_with("aa"), {}, point_with(old)), HasSubstr("700"));
}

TEST(ResumedDataTest, ACopyOfOtherSizeIsTakenWithANote) {
    RunIdentity copy = run_with("aa");
    copy.data->shards[0].bytes = 999;

    EXPECT_THAT(error_of(copy, {}, point_with(run_with("aa"))), IsEmpty());
    EXPECT_THAT(note_on_data(copy, {}, point_with(run_with("aa"))),
                HasSubstr("1 of 1 shards have another size"));
}

TrainingProgress validated() {
    TrainingProgress progress;
    progress.best_valid = Evaluation{.losses = {{"nll", 0.5}}, .metrics = {}};
    progress.best_update = 7;
    progress.validations_since_best = 3;
    return progress;
}

TEST(OtherValidationTest, BestModelAndPatienceBeginAnew) {
    TrainingProgress same = validated();
    forget_other_validation(same, run_with("aa"), point_with(run_with("aa")));
    TrainingProgress other = validated();
    forget_other_validation(other, run_with("aa"), point_with(run_with("bb")));

    EXPECT_EQ(same.best_update, 7);
    EXPECT_EQ(same.validations_since_best, 3);
    EXPECT_FALSE(other.best_valid);
    EXPECT_EQ(other.best_update, 0);
    EXPECT_EQ(other.validations_since_best, 0);
}

// Nothing is compared with it, or it is not known what was.
TEST(OtherValidationTest, NoneOnEitherSideForgetsNothing) {
    RunIdentity none = run_with("aa");
    none.valid_data.reset();
    for (const bool here : {true, false}) {
        TrainingProgress progress = validated();
        forget_other_validation(
            progress, here ? none : run_with("aa"), point_with(here ? run_with("aa") : none));
        EXPECT_EQ(progress.best_update, 7);
    }
}

}  // namespace
}  // namespace hetseq
