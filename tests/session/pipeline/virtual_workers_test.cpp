#include "hetseq/session/pipeline/virtual_workers.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/host/topology.hpp"

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Hosts "7", which looks like a rank, "node-1", which looks like a range, and "n2".
Topology three_hosts() {
    Topology topology;
    topology.hosts = 3;
    topology.ranks = {{.rank = 0, .host = "node-1"},
                      {.rank = 1, .host = "node-1"},
                      {.rank = 2, .host = "7"},
                      {.rank = 3, .host = "n2"},
                      {.rank = 4, .host = "n2"}};
    return topology;
}

std::string refusal_of(const std::string& list) {
    try {
        ranks_of_workers(list, three_hosts());
    } catch (const BadConfig& error) {
        return error.what();
    }
    return "none";
}

TEST(VirtualWorkersTest, AutoIsAllRanks) {
    EXPECT_THAT(ranks_of_workers("auto", three_hosts()), ElementsAre(ElementsAre(0, 1, 2, 3, 4)));
}

TEST(VirtualWorkersTest, RanksRangesAndHostsKeepTheOrderOfTheList) {
    EXPECT_THAT(ranks_of_workers("4+0", three_hosts()), ElementsAre(ElementsAre(4, 0)));
    EXPECT_THAT(ranks_of_workers("3-4+1", three_hosts()), ElementsAre(ElementsAre(3, 4, 1)));
    EXPECT_THAT(ranks_of_workers("n2+node-1", three_hosts()), ElementsAre(ElementsAre(3, 4, 0, 1)));
    EXPECT_THAT(ranks_of_workers("7", three_hosts()), ElementsAre(ElementsAre(2)));
    EXPECT_THAT(ranks_of_workers("2", three_hosts()), ElementsAre(ElementsAre(2)));
}

TEST(VirtualWorkersTest, WhatIsNoRankOrHostIsRefusedByItsName) {
    for (const char* name : {"5", "n3", "all", "0x1", "1.5", "-1"})
        EXPECT_THAT(refusal_of(name),
                    AllOf(HasSubstr("--virtual-workers is '" + std::string(name) + "'"),
                          HasSubstr("not within the job's 5 ranks, nor a host of them"),
                          HasSubstr("give none, auto, or the ranks or hosts of each worker")))
            << name;
    for (const char* list : {"0+", "+0", "0++1", "+", ""})
        EXPECT_THAT(refusal_of(list), HasSubstr("is missing beside")) << list;
}

TEST(VirtualWorkersTest, OfARangeThereAreAllRanks) {
    EXPECT_THAT(ranks_of_workers("3-4", three_hosts()), ElementsAre(ElementsAre(3, 4)));
    EXPECT_THAT(refusal_of("5-9"), HasSubstr("'5-9' is not within"));
    EXPECT_THAT(refusal_of("2-1"), HasSubstr("'2-1' is not within"));
    EXPECT_THAT(refusal_of("3-5"), HasSubstr("'3-5' is not within"));  // the last one is 4
}

TEST(VirtualWorkersTest, ARankIsNamedOnce) {
    EXPECT_THAT(refusal_of("0+1+0"), HasSubstr("it has rank 0 twice"));
    EXPECT_THAT(refusal_of("node-1+1"), HasSubstr("it has rank 1 twice"));
    EXPECT_THAT(refusal_of("0-2+7"), HasSubstr("it has rank 2 twice"));
}

TEST(VirtualWorkersTest, CommasSeparateWorkers) {
    EXPECT_THAT(ranks_of_workers("1+0,n2", three_hosts()),
                ElementsAre(ElementsAre(1, 0), ElementsAre(3, 4)));
    EXPECT_THAT(ranks_of_workers("0-1, 7 ,4+3", three_hosts()),
                ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(4, 3)));
    EXPECT_THAT(refusal_of("0+1,2+1"), HasSubstr("it has rank 1 twice"));
    for (const char* list : {"0,", ",0", "0,,1", "0+,1"})
        EXPECT_THAT(refusal_of(list), HasSubstr("is missing beside")) << list;
}

TEST(StageUnitsTest, AreANumberForEachStage) {
    const auto two = parse_stage_units("3+4+2,5:2");

    EXPECT_THAT(parse_stage_units("9").at(0).units, ElementsAre(9));
    EXPECT_EQ(parse_stage_units("9").at(0).extra_in_flight, 0U);
    ASSERT_EQ(two.size(), 2U);
    EXPECT_THAT(two[0].units, ElementsAre(3, 4, 2));
    EXPECT_EQ(two[0].extra_in_flight, 0U);
    EXPECT_THAT(two[1].units, ElementsAre(5));
    EXPECT_EQ(two[1].extra_in_flight, 2U);
    EXPECT_THAT(parse_stage_units("auto"), IsEmpty());
}

TEST(StageUnitsTest, TheirTextIsReadAgain) {
    for (const char* text : {"3+4+2", "9", "1+1:1", "3+4+2,5:2,1"})
        EXPECT_EQ(stage_units_text(parse_stage_units(text)), text);
}

TEST(StageUnitsTest, AnythingElseIsRefused) {
    for (const char* text : {"",
                             "0",
                             "3+",
                             "+3",
                             "3+0",
                             "3+-1",
                             "3,",
                             "3:",
                             "3:1+2",
                             "3:-1",
                             "three",
                             "3.5+1",
                             "99999999999999999999"})
        try {
            parse_stage_units(text);
            ADD_FAILURE() << text;
        } catch (const BadConfig& error) {
            const bool is_in_flight = std::string_view(text).find(':') != std::string_view::npos;
            EXPECT_THAT(error.what(),
                        AllOf(HasSubstr("--stage-units is '" + std::string(text) + "'"),
                              HasSubstr(is_in_flight ? "is not a number of micro-batches"
                                                     : "is not a number of units"),
                              HasSubstr("give auto, or the units of each stage")));
        }
}

}  // namespace
}  // namespace hetseq
