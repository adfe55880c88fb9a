#include "hetseq/state/training_state.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

TrainingState some_state() {
    TrainingState state;
    state.run = {.options = {{"lr", "0.1"}, {"data", "a b.h5"}},
                 .schedule_updates = 100,
                 .samples = 60000,
                 .corpus = "images (28, 28)",
                 .data = CorpusIdentity{{"images (28 x 28)"},
                                        {{"a.h5", 1234, 6000, {0, 17}, "0123456789abcdef"},
                                         {"b.h5", 99, 54000}}},
                 .devices = {"cpu", "gpu"},
                 .layout = LayoutRecord{"virtual workers auto", R"({"ranks":[0,2]})"}};
    TrainingProgress& progress = state.progress;
    progress.updates = 12;
    progress.samples = 384;
    progress.last_valid = Evaluation{.losses = {{"nll", 0.1 + 0.2}},
                                     .metrics = {{"accuracy", 0.5}},
                                     .samples = 10,
                                     .seconds = 3};
    progress.last_valid_update = 12;
    progress.best_update = 10;
    progress.allocations = {{0, {20, 12}}, {5, {24, 8}}};
    progress.costs = {{.start_ms = 1, .unit_ms = 0.25, .micro_batch = 8}};
    progress.window = {.updates = 2, .finite_updates = 1, .losses = {0.7}};
    progress.schedule_origin = 3;
    progress.schedule_epochs = 2;
    return state;
}

// The error of reading the state after `change`.
std::string error_after(const std::function<void(Json&)>& change) {
    Json json = Json::parse(training_state_json(some_state()));
    change(json);
    try {
        parse_training_state(json.dump(), "S");
    } catch (const BadData& error) {
        return error.what();
    }
    return "no error";
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
    ASSERT_TRUE(read.run.layout);
    EXPECT_EQ(read.run.layout->question, state.run.layout->question);
    EXPECT_EQ(read.run.layout->choice, state.run.layout->choice);
    EXPECT_EQ(read.progress.allocations, state.progress.allocations);
    EXPECT_EQ(read.progress.last_valid->losses[0].value, 0.1 + 0.2);  // to the last bit
    EXPECT_EQ(read.progress.last_valid_update, 12);
    EXPECT_FALSE(read.progress.best_valid);
    EXPECT_EQ(read.progress.costs[0].unit_ms, 0.25);
}

TEST(TrainingStateTest, KnowsWhatHasNoWeight) {
    TrainingState state = some_state();
    EXPECT_EQ(training_state_json(state).find("weightless"), std::string::npos);
    state.progress.window = {
        .updates = 3, .finite_updates = 3, .losses = {0.7, 0}, .weightless = {1, 3}};
    state.progress.best_valid =
        Evaluation{.losses = {{.name = "mlm", .value = 2},
                              {.name = "nsp", .value = std::nan(""), .has_weight = false}}};
    const std::string text = training_state_json(state);

    const TrainingProgress read = parse_training_state(text, "S").progress;

    EXPECT_EQ(training_state_json({state.run, read}), text);
    EXPECT_EQ(read.window.weightless, (std::vector<std::int64_t>{1, 3}));
    EXPECT_EQ(read.best_valid->loss(), 2);
    EXPECT_FALSE(read.best_valid->has_weight("nsp"));
    EXPECT_NE(error_after([](Json& json) {
                  json["progress"]["window"]["weightless"] = {1, 2, 3};
              }),
              "no error");
}

TEST(TrainingStateTest, HoldsTheLossScaleWhereThereIsOne) {
    TrainingState state = some_state();
    EXPECT_EQ(training_state_json(state).find("loss_scale"), std::string::npos);
    state.progress.loss_scale = {.value = 1024, .good_updates = 17, .overflows = 3};

    const auto read = parse_training_state(training_state_json(state), "S").progress.loss_scale;

    ASSERT_TRUE(read);
    EXPECT_EQ(read->value, 1024);
    EXPECT_EQ(read->good_updates, 17);
    EXPECT_EQ(read->overflows, 3);
}

TEST(TrainingStateTest, ALossScaleIsAPowerOfTwo) {
    for (const Json& value : {Json(1000), Json(0.5), Json(0), Json(-2), Json("8")})
        EXPECT_NE(error_after([&](Json& json) {
                      json["progress"]["loss_scale"] = {
                          {"value", value}, {"good_updates", 0}, {"overflows", 0}};
                  }),
                  "no error")
            << value;
}

TEST(TrainingStateTest, KnowsItsData) {
    const TrainingState state = some_state();

    const TrainingState read = parse_training_state(training_state_json(state), "S");

    EXPECT_EQ(read.run.data, state.run.data);
    EXPECT_FALSE(read.run.valid_data);
}

TEST(TrainingStateTest, AStateOfVersion01DoesNotKnowItsData) {
    Json json = Json::parse(training_state_json(some_state()));
    json["run"].erase("data");
    json["run"].erase("valid_data");

    EXPECT_FALSE(parse_training_state(json.dump(), "S").run.data);
}

TEST(TrainingStateTest, DataThatAreNoneAreRefused) {
    const auto shard = [](Json& json) -> Json& { return json["run"]["data"]["shards"][0]; };
    EXPECT_THAT(error_after([&](Json& json) { shard(json)["bytes"] = -1; }),
                HasSubstr("is not a whole number"));
    EXPECT_THAT(error_after([&](Json& json) { shard(json)["rows"][0] = 0.5; }),
                HasSubstr("is not a whole number"));
    EXPECT_THAT(error_after([&](Json& json) { shard(json).erase("name"); }),
                HasSubstr("S is not a training state"));
    EXPECT_THAT(error_after([&](Json& json) { json["run"]["data"] = 5; }),
                HasSubstr("S is not a training state"));
}

// Its schedule went by the epochs of the data's order.
TEST(TrainingStateTest, AnEarlierVersionsScheduleHasTheOrdersEpochs) {
    TrainingState state = some_state();
    state.progress.epochs = 5;
    Json json = Json::parse(training_state_json(state));
    ASSERT_EQ(json["progress"].erase("schedule_epochs"), 1U);

    EXPECT_EQ(parse_training_state(json.dump(), "S").progress.schedule_epochs, 5);
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
    EXPECT_THAT(error_of(""), HasSubstr("S is not a training state"));
    EXPECT_THAT(error_of(text.substr(0, text.size() / 2)), HasSubstr("S is not a training state"));
    EXPECT_THAT(with("\"format\": 1", "\"format\": 2"), HasSubstr("its format is 2"));
    EXPECT_THAT(with("\"updates\": 12", "\"updates\": -1"), HasSubstr("is not a whole number"));
    EXPECT_THAT(with("\"updates\": 12", "\"updates\": \"12\""),
                HasSubstr("S is not a training state"));
}

TEST(TrainingStateTest, ANumberThatIsNoCountIsRefused) {
    for (const char* number : {"-1", "1.5", "1e300", "true", "18446744073709551615", "null"}) {
        const Json value = Json::parse(number);
        EXPECT_THAT(error_after([&](Json& json) { json["progress"]["updates"] = value; }),
                    HasSubstr("is not a whole number"))
            << number;
        EXPECT_THAT(error_after([&](Json& json) { json["format"] = value; }),
                    HasSubstr("is not a whole number"))
            << number;
    }
}

// Updates are counted from 1 in files; 0 would be the one before the first.
TEST(TrainingStateTest, AllocationsAreOfDifferentUpdatesFrom1On) {
    EXPECT_THAT(error_after([](Json& json) { json["progress"]["allocations"][0]["update"] = 0; }),
                HasSubstr("is not a whole number from 1"));
    EXPECT_THAT(error_after([](Json& json) { json["progress"]["allocations"][1]["update"] = 1; }),
                HasSubstr("two allocations are of update 1"));
}

// Written out to be read again, such a value would take the stack.
TEST(TrainingStateTest, DeeplyNestedJsonIsBadData) {
    const std::string text = training_state_json(some_state());
    const std::string costs = "\"costs\": [";
    const auto place = text.find(costs);
    ASSERT_NE(place, std::string::npos);
    const std::string deep = std::string(500'000, '[') + std::string(500'000, ']') + ",";
    std::string nested = text;
    nested.insert(place + costs.size(), deep);

    EXPECT_THROW(parse_training_state(nested, "S"), BadData);
}

TEST(TrainingStateTest, PendingUpdatesAreReadAsTheyWereWritten) {
    TrainingState state = some_state();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    state.progress.pending = {{.epoch = 2,
                               .samples = 32,
                               .units = 40,
                               .is_full = false,
                               .ends_epoch = true,
                               .allocation = {20, 12},
                               .losses = {0.1 + 0.2, nan},
                               .weightless = {1},
                               .gradient_norm = 0.7,
                               .scale = 1024},
                              {.samples = 7}};
    const std::string text = training_state_json(state);

    const TrainingState read = parse_training_state(text, "S");

    EXPECT_EQ(training_state_json(read), text);
    ASSERT_EQ(read.progress.pending.size(), 2U);
    const PendingUpdate& first = read.progress.pending[0];
    EXPECT_EQ(first.losses[0], 0.1 + 0.2);
    EXPECT_TRUE(std::isnan(first.losses[1]));
    EXPECT_EQ(first.weightless, std::vector<std::size_t>{1});
    EXPECT_EQ(first.gradient_norm, 0.7);
    EXPECT_EQ(first.scale, 1024);
    EXPECT_TRUE(first.ends_epoch && !first.is_full);
    EXPECT_EQ(first.allocation, (std::vector<std::int64_t>{20, 12}));
    EXPECT_EQ(read.progress.pending[1].samples, 7);
}

TEST(TrainingStateTest, WithoutPendingUpdatesNothingIsSaidOfThem) {
    EXPECT_EQ(training_state_json(some_state()).find("pending"), std::string::npos);
}

TEST(TrainingStateTest, APendingUpdateWhoseScaleIsNoPowerOfTwoIsAnError) {
    TrainingState state = some_state();
    state.progress.pending = {{.scale = 1000}};

    EXPECT_THAT(error_of(training_state_json(state)), HasSubstr("1000 is no power of two"));
}

}  // namespace
}  // namespace hetseq
