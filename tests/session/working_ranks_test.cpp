#include "hetseq/session/working_ranks.hpp"

#include <gtest/gtest.h>

namespace hetseq {
namespace {

// A CPU between two GPUs.
RunSettings unlike_ranks(OptionValues values) {
    OptionValues all;
    for (const auto& option : option_table())
        all[option.name] = option.default_value;
    for (const auto& [name, value] : values)
        all[name] = value;
    RunSettings settings{SettledOptions(all)};
    settings.topology.hosts = 1;
    for (int rank = 0; rank < 3; ++rank)
        settings.topology.ranks.push_back(
            {.rank = rank,
             .host = "node",
             .device = rank == 1 ? "cpu" : "cuda:0",
             .device_name = rank == 1 ? "EPYC" : "V100",
             .device_uuid = rank == 1 ? "" : "GPU-" + std::to_string(rank)});
    settings.precisions = {Precision::fp16, Precision::fp32, Precision::bf16};
    settings.recompute = {all_layers, 0, 2};
    settings.shard_by = {
        {ShardPart::By::number, 1}, {ShardPart::By::number, 3}, {ShardPart::By::number, 2}};
    return settings;
}

TEST(WorkingRanksTest, OptionsOfSomeRanksKeepTheirValuesAndTheGlobalBatch) {
    const RunSettings settings = unlike_ranks({{"device", "0=cuda,1=cpu,2=cuda"},
                                               {"max-sentences", "0=64,1=4,2=32"},
                                               {"threads", "0=1,1=8,2=2"},
                                               {"cache-mb", "100"},
                                               {"batch-size", "100"}});

    const OptionValues values = options_on(settings, {0, 2}).values();

    EXPECT_EQ(values.at("device"), "cuda");
    EXPECT_EQ(values.at("max-sentences"), "0=64,1=32");
    EXPECT_EQ(values.at("threads"), "0=1,1=2");
    EXPECT_EQ(values.at("cache-mb"), "100");
    EXPECT_EQ(values.at("precision"), "0=fp16,1=bf16");
    EXPECT_EQ(values.at("recompute"), "0=all,1=2");
    EXPECT_EQ(values.at("shard-by"), "0=1,1=2");
    EXPECT_EQ(values.at("batch-size"), "100");
}

// A stage may have none, and may be the only one that the fastest cut has a use for.
TEST(WorkingRanksTest, InALayoutOfRanksWithoutCapacityTheLeastOfTheOthersHolds) {
    const RunSettings settings = unlike_ranks(
        {{"max-sentences", "0=8,1=0,2=6"}, {"max-tokens", "500"}, {"virtual-workers", "0+1+2"}});
    const auto sentences = [&](const std::vector<int>& ranks) {
        return options_in_layout(settings, ranks).values().at("max-sentences");
    };

    EXPECT_EQ(sentences({1}), "6");
    EXPECT_EQ(sentences({0, 1}), "0=8,1=0");
    EXPECT_EQ(options_in_layout(settings, {1}).values().at("max-tokens"), "500");
}

TEST(WorkingRanksTest, RanksOfCapacityZeroAreLeftOutWhereTheLayoutIsToBeFound) {
    const auto kept = [](const OptionValues& values) {
        RunSettings settings = unlike_ranks(values);
        settings.capacities = {8, 0, 4};
        return ranks_with_capacity(settings, {0, 1, 2});
    };

    EXPECT_EQ(kept({{"virtual-workers", "auto"}}), (std::vector{0, 2}));
    EXPECT_EQ(kept({{"virtual-workers", "none"}}), (std::vector{0, 1, 2}));
    EXPECT_EQ(kept({{"virtual-workers", "auto"}, {"stage-units", "1+1+1"}}),
              (std::vector{0, 1, 2}));
}

}  // namespace
}  // namespace hetseq
