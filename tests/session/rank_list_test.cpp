#include "hetseq/session/rank_list.hpp"

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

Topology two_hosts() {
    Topology topology;
    topology.hosts = 2;
    topology.ranks = {{.rank = 0, .host = "h1", .device_name = "Tesla V100-SXM2"},
                      {.rank = 1, .host = "h1", .device_name = "Tesla V100-SXM2"},
                      {.rank = 2, .host = "h2", .device_name = "Tesla P100-PCIE"}};
    return topology;
}

std::vector<std::int64_t> values_of(const std::string& list) {
    const Topology topology = two_hosts();
    std::vector<std::int64_t> values;
    for (int rank = 0; rank < 3; ++rank)
        values.push_back(rank_value("max-sentences", list, topology, rank));
    return values;
}

TEST(RankValueTest, OneNumberIsForAll) {
    EXPECT_THAT(values_of("8"), testing::ElementsAre(8, 8, 8));
}

TEST(RankValueTest, FindsByRankHostAndDevice) {
    EXPECT_THAT(values_of("0=3,1=1,2=0"), testing::ElementsAre(3, 1, 0));
    EXPECT_THAT(values_of("0-1=4,2=2"), testing::ElementsAre(4, 4, 2));
    EXPECT_THAT(values_of("h1=4,h2=2"), testing::ElementsAre(4, 4, 2));
    EXPECT_THAT(values_of("v100=64,p100=16"), testing::ElementsAre(64, 64, 16));
}

TEST(RankValueTest, ADeviceIsNamedByWholeWords) {
    EXPECT_THAT(values_of("p1=1,v10=2,Tesla V100=3,p100pcie=4"), testing::ElementsAre(3, 3, 4));
}

TEST(RankValueTest, AHostsNameIsNoDevice) {
    Topology topology = two_hosts();
    topology.ranks[0].device_name = "P100 H2";
    EXPECT_EQ(rank_value("max-sentences", "h2=2,h1=4", topology, 0), 4);
}

TEST(RankValueTest, OneListServesEveryJob) {
    EXPECT_THAT(values_of("a100=128,v100=64,p100=16,7=1"), testing::ElementsAre(64, 64, 16));
}

TEST(RankValueTest, FirstEntryThatFitsCounts) {
    EXPECT_THAT(values_of("1=7,h1=4,h2=2"), testing::ElementsAre(4, 7, 2));
}

std::vector<std::string> precisions_of(const std::string& list) {
    const Topology topology = two_hosts();
    std::vector<std::string> words;
    for (int rank = 0; rank < 3; ++rank)
        words.push_back(rank_word("precision", list, {"auto", "fp32", "fp16"}, topology, rank));
    return words;
}

TEST(RankWordOfDevicesTest, FindsByRankHostAndDevice) {
    EXPECT_THAT(precisions_of("fp16"), testing::ElementsAre("fp16", "fp16", "fp16"));
    EXPECT_THAT(precisions_of("1=auto,v100=fp16,h2=fp32"),
                testing::ElementsAre("fp16", "auto", "fp32"));
    EXPECT_THAT(precisions_of("a100=auto,p100=fp32,h1=fp16"),
                testing::ElementsAre("fp16", "fp16", "fp32"));
}

TEST(RankWordOfDevicesTest, BlanksAroundKeysAndWordsDoNotMatter) {
    EXPECT_THAT(precisions_of(" 1 = auto , v100=fp16, h2 =fp32 "),
                testing::ElementsAre("fp16", "auto", "fp32"));
}

TEST(RankWordOfDevicesTest, RefusesWhatItCannotReadOrFind) {
    EXPECT_THROW(precisions_of("v100"), BadConfig);
    EXPECT_THROW(precisions_of("v100=fp8,p100=fp32"), BadConfig);
    EXPECT_THROW(precisions_of("v100=fp16"), BadConfig);
    EXPECT_THROW(precisions_of(""), BadConfig);
}

TEST(RankListTest, WordsAreWrittenByRankWhereTheyDiffer) {
    EXPECT_EQ(rank_list(std::vector<std::string>{"fp16", "fp16"}), "fp16");
    EXPECT_EQ(rank_list(std::vector<std::string>{"fp16", "fp32"}), "0=fp16,1=fp32");
}

TEST(RankValueTest, RefusesWhatItCannotReadOrFind) {
    EXPECT_THROW(values_of("v100"), Error);
    EXPECT_THROW(values_of("v100=many"), Error);
    EXPECT_THROW(values_of("-3"), Error);
    EXPECT_THROW(values_of("v100=64"), Error);
    EXPECT_THROW(values_of("0-2=4,many"), Error);
}

TEST(CompetingEntriesTest, AreTheOneThatCountsAndTheFirstThatDiffers) {
    const Topology topology = two_hosts();
    const std::string list = " 1 = 7,v100=4,h1=4,0-1=5,2=2";

    EXPECT_EQ(competing_entries(list, topology, 0), "'v100=4' and '0-1=5'");
    EXPECT_EQ(competing_entries(list, topology, 1), "'1=7' and 'v100=4'");
    EXPECT_EQ(competing_entries(list, topology, 2), "");
    EXPECT_EQ(competing_entries("fp16", topology, 0), "");
}

TEST(CompetingEntriesTest, AreNotOfDevicesWhereTheyCannotBeNamed) {
    EXPECT_EQ(competing_entries("0=cpu,h1=cuda", 0, "h1"), "'0=cpu' and 'h1=cuda'");
    EXPECT_EQ(competing_entries("0=cpu,v100=cuda", 0, "h1"), "");
}

TEST(RankListTest, ReadsBackAsItWas) {
    EXPECT_EQ(rank_list({4, 4, 4}), "4");
    EXPECT_EQ(rank_list({3, 1, 0}), "0=3,1=1,2=0");
    EXPECT_THAT(values_of(rank_list({3, 1, 0})), testing::ElementsAre(3, 1, 0));
}

std::vector<std::string> words_of(const std::string& list) {
    std::vector<std::string> words;
    for (const RankInfo& info : two_hosts().ranks)
        words.push_back(rank_word("device", list, {"auto", "cpu", "cuda"}, info.rank, info.host));
    return words;
}

TEST(RankWordTest, OneWordIsForAll) {
    EXPECT_THAT(words_of("cpu"), testing::ElementsAre("cpu", "cpu", "cpu"));
}

TEST(RankWordTest, FindsByRankAndHost) {
    EXPECT_THAT(words_of("0-1=cuda,2=cpu"), testing::ElementsAre("cuda", "cuda", "cpu"));
    EXPECT_THAT(words_of("1=cpu,h1=cuda,h2=auto"), testing::ElementsAre("cuda", "cpu", "auto"));
}

TEST(RankWordTest, RefusesWhatItCannotReadOrFind) {
    for (const std::string list : {"gpu", "0=gpu", "=cpu", "0=cpu,1"}) {
        try {
            words_of(list);
            ADD_FAILURE() << "no error for " << list;
        } catch (const BadConfig& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("one of auto, cpu, cuda"));
        }
    }
    try {
        words_of("0-1=cuda");
        ADD_FAILURE() << "no error";
    } catch (const BadConfig& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("no entry for rank 2 (on host h2)"));
    }
}

}  // namespace
}  // namespace hetseq
