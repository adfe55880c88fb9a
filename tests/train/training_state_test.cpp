#include "hetseq/train/training_state.hpp"

#include <functional>

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
    state.run.options = {{"task", "mnist"}};
    state.progress.updates = 12;
    state.progress.allocations = {{0, {5, 5}}, {6, {6, 4}}};
    state.progress.costs = {{.start_ms = 1.5, .unit_ms = 0.25, .micro_batch = 8}};
    state.progress.window.losses = {0.5};
    return state;
}

// What reading says of the state after `change`.
std::string error_after(const std::function<void(Json&)>& change) {
    Json json = Json::parse(training_state_json(some_state()));
    change(json);
    try {
        parse_training_state(json.dump(), "state.json");
    } catch (const BadData& error) {
        return error.what();
    }
    return "no error";
}

TEST(TrainingStateTest, WhatIsWrittenIsRead) {
    const std::string text = training_state_json(some_state());

    EXPECT_EQ(training_state_json(parse_training_state(text, "state.json")), text);
    EXPECT_EQ(error_after([](Json&) {}), "no error");
}

TEST(TrainingStateTest, ANumberThatIsNoCountIsRefused) {
    for (const char* number : {"-1", "1.5", "1e300", "true", "18446744073709551615", "null"}) {
        const Json value = Json::parse(number);
        EXPECT_THAT(error_after([&](Json& json) { json["progress"]["updates"] = value; }),
                    HasSubstr("is no whole number"))
            << number;
        EXPECT_THAT(error_after([&](Json& json) { json["format"] = value; }),
                    HasSubstr("is no whole number"))
            << number;
    }
}

// Updates are counted from 1 in files; 0 would be the one before the first.
TEST(TrainingStateTest, AllocationsAreOfDifferentUpdatesFrom1On) {
    EXPECT_THAT(error_after([](Json& json) { json["progress"]["allocations"][0]["update"] = 0; }),
                HasSubstr("is no whole number from 1"));
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

    EXPECT_THROW(parse_training_state(nested, "state.json"), BadData);
}

}  // namespace
}  // namespace hetseq
