#include "hetseq/train/training_state.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::HasSubstr;

TrainingState some_state() {
    TrainingState state;
    state.run = {.options = {{"lr", "0.1"}, {"data", "a b.h5"}},
                 .schedule_updates = 100,
                 .samples = 60000,
                 .corpus = "images (28, 28)",
                 .devices = {"cpu", "gpu"}};
    TrainingProgress& progress = state.progress;
    progress.updates = 12;
    progress.samples = 384;
    progress.last_valid = Evaluation{.losses = {{"nll", 0.1 + 0.2}},
                                     .metrics = {{"accuracy", 0.5}},
                                     .samples = 10,
                                     .seconds = 3};
    progress.best_update = 10;
    progress.allocations = {{0, {20, 12}}, {5, {24, 8}}};
    progress.costs = {{.start_ms = 1, .unit_ms = 0.25, .micro_batch = 8}};
    progress.window = {.updates = 2, .finite_updates = 1, .losses = {0.7}};
    progress.schedule_origin = 3;
    return state;
}

std::string error_of(const std::string& text) {
    try {
        parse_training_state(text, "S");
    } catch (const BadData& error) {
        return error.what();
    }
    return "no error";
}

TEST(TrainingStateTest, IsReadAsItWasWritten) {
    const TrainingState state = some_state();
    const std::string text = training_state_json(state);

    const TrainingState read = parse_training_state(text, "S");

    EXPECT_EQ(training_state_json(read), text);
    EXPECT_EQ(read.run.options, state.run.options);
    EXPECT_EQ(read.progress.allocations, state.progress.allocations);
    EXPECT_EQ(read.progress.last_valid->losses[0].value, 0.1 + 0.2);  // to the last bit
    EXPECT_FALSE(read.progress.best_valid);
    EXPECT_EQ(read.progress.costs[0].unit_ms, 0.25);
}

TEST(TrainingStateTest, HoldsNoTimesOfAClock) {
    TrainingState other = some_state();
    other.progress.last_valid->seconds = 99;
    EXPECT_EQ(training_state_json(other), training_state_json(some_state()));
}

TEST(TrainingStateTest, ALossThatIsNoNumberStaysNone) {
    TrainingState state = some_state();
    state.progress.last_valid->losses[0].value = std::numeric_limits<double>::quiet_NaN();
    const TrainingState read = parse_training_state(training_state_json(state), "S");
    EXPECT_TRUE(std::isnan(read.progress.last_valid->loss()));
}

TEST(TrainingStateTest, WhatIsNoneIsRefused) {
    const std::string text = training_state_json(some_state());
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        changed.replace(changed.find(from), from.size(), to);
        return error_of(changed);
    };
    EXPECT_THAT(error_of(""), HasSubstr("S is no state of a training"));
    EXPECT_THAT(error_of(text.substr(0, text.size() / 2)), HasSubstr("S is no state"));
    EXPECT_THAT(with("\"format\": 1", "\"format\": 2"), HasSubstr("its format is 2"));
    EXPECT_THAT(with("\"updates\": 12", "\"updates\": -1"), HasSubstr("a count is -1"));
    EXPECT_THAT(with("\"updates\": 12", "\"updates\": \"12\""), HasSubstr("S is no state"));
}

}  // namespace
}  // namespace hetseq
