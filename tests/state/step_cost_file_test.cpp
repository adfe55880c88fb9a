#include "hetseq/state/step_cost_file.hpp"

#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"

#include <nlohmann/json.hpp>

namespace hetseq {
namespace {

namespace fs = std::filesystem;

StepCost line() {
    return {.start_ms = 1.5, .micro_batch_ms = 0.25, .unit_ms = 1.0 / 3, .micro_batch = 32};
}

TEST(StepCostJsonTest, ReadsBackExactly) {
    StepCost cost = line();
    cost.scale = 1.1;
    cost.table = StepTable({{0, 0.5}, {8, 3}, {16, 7.25}});

    const StepCost read = parse_step_cost(step_cost_json(cost));

    EXPECT_EQ(read.unit_ms, cost.unit_ms);
    for (const std::int64_t units : {1, 7, 16, 100})
        EXPECT_EQ(read.time_ms(units), cost.time_ms(units));
    EXPECT_EQ(parse_step_cost(step_cost_json(line())).time_ms(65), line().time_ms(65));
}

TEST(StepCostJsonTest, OnlyALimitThatThereIsIsWritten) {
    StepCost limited = line();
    limited.max_units = 64;

    EXPECT_FALSE(nlohmann::json::parse(step_cost_json(line())).contains("max_units"));
    EXPECT_EQ(parse_step_cost(step_cost_json(line())).max_units, line().max_units);
    EXPECT_EQ(parse_step_cost(step_cost_json(limited)).max_units, 64);
}

TEST(StepCostJsonTest, WhatComesOnceAnUpdateIsKept) {
    StepCost cost = line();
    cost.update_ms = 7.5;

    EXPECT_EQ(parse_step_cost(step_cost_json(cost)).update_ms, 7.5);
    EXPECT_FALSE(nlohmann::json::parse(step_cost_json(line())).contains("update_ms"));
    EXPECT_EQ(parse_step_cost(step_cost_json(line())).update_ms, 0);
}

TEST(StepCostJsonTest, WhatMemoryAndRecomputingNeedIsKept) {
    StepCost cost = line();
    cost.activations_mb = 812.5;
    cost.forward_part = 0.41;
    cost.recomputed_layers = 6;

    const StepCost read = parse_step_cost(step_cost_json(cost));

    EXPECT_EQ(read.activations_mb, 812.5);
    EXPECT_EQ(read.forward_part, 0.41);
    EXPECT_EQ(read.recomputed_layers, 6);
    EXPECT_EQ(parse_step_cost(step_cost_json(line())).forward_part, StepCost{}.forward_part);
}

TEST(StepCostJsonTest, RefusesWhatIsNone) {
    EXPECT_THROW(parse_step_cost("{}"), Error);
    EXPECT_THROW(parse_step_cost("no json"), Error);
}

// Every one of them would break what allocation rests on: costs are finite and never fall.
TEST(StepCostJsonTest, RefusesNumbersThatNoMeasurementGives) {
    const auto with = [](const std::string& key, const std::string& value) {
        auto json = nlohmann::json::parse(step_cost_json(line()));
        json[key] = nlohmann::json::parse(value);
        return json.dump();
    };
    ASSERT_NO_THROW(parse_step_cost(with("scale", "2")));
    const std::pair<const char*, const char*> wrong[] = {{"start_ms", "-1"},
                                                         {"unit_ms", "-0.5"},
                                                         {"unit_ms", "1e300"},
                                                         {"micro_batch_ms", "true"},
                                                         {"micro_batch", "1.5"},
                                                         {"micro_batch", "-1"},
                                                         {"micro_batch", "1e300"},
                                                         {"scale", "0"},
                                                         {"max_units", "18446744073709551615"},
                                                         {"table", "[]"},
                                                         {"table", "[[0, 1]]"},
                                                         {"table", "[[8, 1], [8, 2]]"},
                                                         {"table", "[[8, -1]]"},
                                                         {"table", "[[-8, 1]]"},
                                                         {"table", "[8]"}};
    for (const auto& [key, value] : wrong) {
        try {
            parse_step_cost(with(key, value));
            ADD_FAILURE() << key << " " << value << ": accepted";
        } catch (const BadData& error) {
            EXPECT_EQ(std::string(error.what()).find("internal error"), std::string::npos)
                << error.what();
        }
    }
}

class StepCostCacheTest : public testing::Test {
protected:
    ~StepCostCacheTest() override { fs::remove_all(folder_); }

    fs::path only_file() const { return fs::directory_iterator(folder_)->path(); }

    fs::path folder_ =
        fs::temp_directory_path() / ("hetseq-cost-cache-" + std::to_string(getpid()));
    StepCostCache cache_{folder_ / "made"};
};

TEST_F(StepCostCacheTest, FindsWhatWasStoredUnderTheSameKey) {
    EXPECT_FALSE(cache_.find("a V100"));

    cache_.store("a V100", {line(), {0.25}});

    ASSERT_TRUE(cache_.find("a V100"));
    EXPECT_EQ(cache_.find("a V100")->cost.time_ms(40), line().time_ms(40));
    EXPECT_EQ(cache_.find("a V100")->item_cost.square, 0.25);
    EXPECT_FALSE(cache_.find("a P100"));
}

TEST_F(StepCostCacheTest, AFileIsReadForItself) {
    StepCostCache(folder_).store("V100, BERT", {line()});
    for (const auto& entry : fs::directory_iterator(folder_))
        EXPECT_EQ(read_step_cost(entry.path()).time_ms(65), line().time_ms(65));

    EXPECT_THROW(read_step_cost(folder_ / "none.json"), MissingInput);
    std::ofstream(folder_ / "other.json") << "{}";
    EXPECT_THROW(read_step_cost(folder_ / "other.json"), BadData);
}

TEST_F(StepCostCacheTest, ADamagedFileIsAsNone) {
    cache_.store("key", {line()});
    std::ofstream{fs::directory_iterator(folder_ / "made")->path()} << "{\"key\": \"key\", \"co";

    EXPECT_FALSE(cache_.find("key"));
}

TEST_F(StepCostCacheTest, AFolderThatCannotBeWrittenKeepsNothing) {
    fs::create_directories(folder_);
    std::ofstream{folder_ / "file"} << "no folder";
    const StepCostCache cache{folder_ / "file"};

    EXPECT_NE(cache.store("key", {line()}), "");
    EXPECT_FALSE(cache.find("key"));

    EXPECT_EQ(cache_.store("key", {line()}), "");
    EXPECT_EQ(StepCostCache({}).store("key", {line()}), "") << "none is to be kept";
}

}  // namespace
}  // namespace hetseq
