#include "hetseq/session/ranks/by_rank.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/session/ranks/rank_options.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology two_hosts() {
    Topology topology;
    topology.hosts = 2;
    topology.ranks = {{.rank = 0, .host = "h1", .device_name = "Tesla V100-SXM2"},
                      {.rank = 1, .host = "h1", .device_name = "Tesla V100-SXM2"},
                      {.rank = 2, .host = "h2", .device_name = "Tesla P100-PCIE"}};
    return topology;
}

// The texts of what `text` says of each of the three ranks.
template <class T>
std::vector<std::string> by_rank(const Option<ByRank<T>>& option, const std::string& text) {
    const Topology topology = two_hosts();
    const ByRank<T> list = option.read(text);
    std::vector<std::string> texts;
    for (int rank = 0; rank < 3; ++rank)
        texts.push_back(choice_text(value_of_rank(option.name(), list, RankPlace(topology, rank))));
    return texts;
}

template <class T>
std::string error_of(const Option<ByRank<T>>& option, const std::string& text) {
    try {
        by_rank(option, text);
    } catch (const BadConfig& error) {
        return error.what();
    }
    return "no error for " + text;
}

const Option<ByRank<std::int64_t>> numbers = number_by_rank_option("max-sentences", "", "samples");
const Option<ByRank<PrecisionChoice>> precisions = precision_option("what is computed in");

TEST(ByRankTest, OneNumberIsForAll) {
    EXPECT_THAT(by_rank(numbers, "8"), ElementsAre("8", "8", "8"));
}

TEST(ByRankTest, FindsByRankHostAndDevice) {
    EXPECT_THAT(by_rank(numbers, "0=3,1=1,2=0"), ElementsAre("3", "1", "0"));
    EXPECT_THAT(by_rank(numbers, "0-1=4,2=2"), ElementsAre("4", "4", "2"));
    EXPECT_THAT(by_rank(numbers, "h1=4,h2=2"), ElementsAre("4", "4", "2"));
    EXPECT_THAT(by_rank(numbers, "v100=64,p100=16"), ElementsAre("64", "64", "16"));
}

TEST(ByRankTest, ADeviceIsNamedByWholeWords) {
    EXPECT_THAT(by_rank(numbers, "p1=1,v10=2,Tesla V100=3,p100pcie=4"), ElementsAre("3", "3", "4"));
}

TEST(ByRankTest, AHostsNameIsNoDevice) {
    Topology topology = two_hosts();
    topology.ranks[0].device_name = "P100 H2";
    EXPECT_EQ(numbers.read("h2=2,h1=4").find(RankPlace(topology, 0)), 4);
}

TEST(ByRankTest, OneListServesEveryJob) {
    EXPECT_THAT(by_rank(numbers, "a100=128,v100=64,p100=16,7=1"), ElementsAre("64", "64", "16"));
}

TEST(ByRankTest, TheFirstEntryThatNamesARankCounts) {
    EXPECT_THAT(by_rank(numbers, "1=7,h1=4,h2=2"), ElementsAre("4", "7", "2"));
}

TEST(ByRankTest, RefusesWhatItCannotReadOrFind) {
    for (const std::string text : {"v100", "v100=many", "-3", "0-2=4,many", "=4", "1000000001"})
        EXPECT_THAT(error_of(numbers, text), HasSubstr("is not a whole number")) << text;
    EXPECT_THAT(error_of(numbers, "v100=64"),
                HasSubstr("--max-sentences has no entry for rank 2 (on host h2, device Tesla "
                          "P100-PCIE): add one, by rank, host or device"));
}

TEST(ByRankTest, WithoutADefaultItMayBeLeftEmpty) {
    EXPECT_TRUE(numbers.read("").is_empty());
    EXPECT_EQ(numbers.read("").text(), "");
    EXPECT_THROW(number_by_rank_option("threads", "0", "threads").read(""), BadConfig);
}

TEST(ByRankTest, WordsAreFoundByRankHostAndDevice) {
    EXPECT_THAT(by_rank(precisions, "fp16"), ElementsAre("fp16", "fp16", "fp16"));
    EXPECT_THAT(by_rank(precisions, "1=auto,v100=fp16,h2=fp32"),
                ElementsAre("fp16", "auto", "fp32"));
    EXPECT_THAT(by_rank(precisions, "a100=auto,p100=fp32,h1=fp16"),
                ElementsAre("fp16", "fp16", "fp32"));
}

TEST(ByRankTest, BlanksAroundKeysAndWordsDoNotMatter) {
    EXPECT_THAT(by_rank(precisions, " 1 = auto , v100=fp16, h2 =fp32 "),
                ElementsAre("fp16", "auto", "fp32"));
}

TEST(ByRankTest, RefusesWordsThatAreNoChoice) {
    for (const std::string text : {"v100", "v100=fp8,p100=fp32", ""})
        EXPECT_THAT(error_of(precisions, text),
                    HasSubstr("one of auto, fp32, fp64, tf32, bf16, fp16, nor KEY=VALUE by rank, "
                              "host or device"))
            << text;
    EXPECT_THAT(error_of(precisions, "v100=fp16"), HasSubstr("no entry for rank 2"));
    EXPECT_THAT(error_of(precisions, "bf16,fp32"),
                HasSubstr("'bf16' is not KEY=VALUE by rank, host or device, as in v100=fp16"))
        << "a good word that says of nobody";
}

TEST(ByRankTest, LayersToRecomputeAreAWordOrANumber) {
    const auto recompute = recompute_option("layers");
    EXPECT_THAT(by_rank(recompute, "0=all,1=3,2=auto"), ElementsAre("all", "3", "auto"));
    EXPECT_THAT(by_rank(recompute, "0"), ElementsAre("none", "none", "none"));
    EXPECT_EQ(recompute.read("all").for_all(), RecomputeChoice(all_layers));
}

TEST(ByRankTest, PartsOfAStateAreAWordOrANumber) {
    const auto shard_by = shard_by_option("parts");
    EXPECT_THAT(by_rank(shard_by, "v100=3,p100=1"), ElementsAre("3", "3", "1"));
    EXPECT_THAT(by_rank(shard_by, "even"), ElementsAre("even", "even", "even"));
}

TEST(ByRankTest, CompetingAreTheEntryThatCountsAndTheFirstThatDiffers) {
    const Topology topology = two_hosts();
    const ByRank<std::int64_t> list = numbers.read(" 1 = 7,v100=4,h1=4,0-1=5,2=2");

    EXPECT_EQ(list.competing_entries(RankPlace(topology, 0)), "'v100=4' and '0-1=5'");
    EXPECT_EQ(list.competing_entries(RankPlace(topology, 1)), "'1=7' and 'v100=4'");
    EXPECT_EQ(list.competing_entries(RankPlace(topology, 2)), "");
    EXPECT_EQ(numbers.read("8").competing_entries(RankPlace(topology, 0)), "");
}

TEST(ByRankTest, ReadsBackAsItWasWritten) {
    EXPECT_EQ(list_by_rank(std::vector<std::int64_t>{4, 4, 4}).text(), "4");
    EXPECT_EQ(list_by_rank(std::vector<std::int64_t>{3, 1, 0}).text(), "0=3,1=1,2=0");
    EXPECT_THAT(by_rank(numbers, "0=3,1=1,2=0"), ElementsAre("3", "1", "0"));
    const std::vector<PrecisionChoice> choices{Precision::fp16, std::nullopt};
    EXPECT_EQ(list_by_rank(choices).text(), "0=fp16,1=auto");
}

TEST(ByRankTest, DevicesAreChosenByRankAndHostAlone) {
    const auto device = device_option("devices");
    const ByRank<DeviceChoice> list = device.read("1=cpu,h1=cuda,h2=auto");
    EXPECT_EQ(list.find(RankPlace(0, "h1")), DeviceChoice::cuda);
    EXPECT_EQ(list.find(RankPlace(1, "h1")), DeviceChoice::cpu);
    EXPECT_EQ(list.find(RankPlace(2, "h2")), DeviceChoice::automatic);
    EXPECT_EQ(device.read("v100=cuda").find(RankPlace(0, "h1")), std::nullopt);
    EXPECT_EQ(device.read("0=cpu,h1=cuda").competing_entries(RankPlace(0, "h1")),
              "'0=cpu' and 'h1=cuda'");
    EXPECT_EQ(device.read("0=cpu,v100=cuda").competing_entries(RankPlace(0, "h1")), "");
    for (const std::string text : {"gpu", "0=gpu", "=cpu", "0=cpu,1"})
        EXPECT_THAT(error_of(device, text), HasSubstr("one of auto, cpu, cuda")) << text;
    try {
        value_of_rank("device", device.read("0-1=cuda"), RankPlace(2, "h2"));
        ADD_FAILURE() << "no error";
    } catch (const BadConfig& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("--device has no entry for rank 2 (on host h2): add one, by rank or "
                              "host"));
    }
}

}  // namespace
}  // namespace hetseq
