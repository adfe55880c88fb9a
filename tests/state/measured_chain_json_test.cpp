#include "hetseq/state/measured_chain_json.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;

MeasuredChain three_units() {
    return {.micro_batches = {8, 4},
            .units = {{"front", 10, 0.5, 0.25, 0.125},
                      {"layer", 20, 0.5, 0.25, 0.125},
                      {"head", 12, 0.5, 0, 0.125}},
            .tied = {{.units = {0, 2}, .parameters = 8, .filled = {0.25, 1}}},
            .devices = {{"Tesla V100", {"h1"}, 0.5, {1, 2, 3}, 0.75}}};
}

TEST(MeasuredChainJsonTest, IsReadAsItWasWritten) {
    const nlohmann::json written = measured_chain_to_json(three_units());

    const MeasuredChain read = measured_chain_from_json(written);

    EXPECT_EQ(nlohmann::json(measured_chain_to_json(read)), written);
    ASSERT_EQ(read.tied.size(), 1U);
    EXPECT_THAT(read.tied[0].units, ElementsAre(0, 2));
    EXPECT_EQ(read.tied[0].parameters, 8);
    EXPECT_THAT(read.tied[0].filled, ElementsAre(0.25, 1));
    EXPECT_THAT(read.devices[0].unit_ms, ElementsAre(1, 2, 3));
}

TEST(MeasuredChainJsonTest, EarlierRunsSayNothingOfTiedParameters) {
    nlohmann::json json = measured_chain_to_json(three_units());
    json.erase("tied");
    json["devices"][0].erase("message_ms_per_mb");

    EXPECT_TRUE(measured_chain_from_json(json).tied.empty());
}

TEST(MeasuredChainJsonTest, WhatDoesNotFitTogetherIsRefused) {
    const auto damaged = [](const char* key, const nlohmann::json& value) {
        nlohmann::json json = measured_chain_to_json(three_units());
        json["tied"][0][key] = value;
        return json;
    };
    EXPECT_THROW(measured_chain_from_json(damaged("units", {0, 0})), BadData);
    EXPECT_THROW(measured_chain_from_json(damaged("units", nlohmann::json::array({2}))), BadData);
    EXPECT_THROW(measured_chain_from_json(damaged("filled", {1, 1, 1})), BadData);
    EXPECT_THROW(measured_chain_from_json(damaged("units", {0, 3})), BadData);
    EXPECT_THROW(measured_chain_from_json(damaged("filled", {0.5, 2})), BadData);
    EXPECT_THROW(measured_chain_from_json(damaged("parameters", -1)), BadData);
    EXPECT_THROW(measured_chain_from_json(damaged("parameters", 1e9)), BadData);
    nlohmann::json two = measured_chain_to_json(three_units());
    two["tied"].push_back(two["tied"][0]);
    EXPECT_THROW(measured_chain_from_json(two), BadData) << "a parameter in two groups";
    for (const char* key : {"tied", "units"}) {
        nlohmann::json none = measured_chain_to_json(three_units());
        none[key] = nullptr;
        EXPECT_THROW(measured_chain_from_json(none), BadData) << key;
    }
}

}  // namespace
}  // namespace hetseq
