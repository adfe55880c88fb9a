#include "hetseq/report/charts/allocation_chart.hpp"

#include <gtest/gtest.h>

#include "report/occurrences.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::occurrences;
using testing::HasSubstr;

TEST(AllocationChartTest, EachRanksShareIsTold) {
    const std::string figure = allocation_chart({.title = "Allocation",
                                                 .allocations = {{1, {48, 16}}, {101, {32, 32}}},
                                                 .last_update = 200,
                                                 .ranks = {"rank 0, v100"}});

    EXPECT_THAT(figure,
                HasSubstr("<title>rank 0, v100\n48 of 64 units of cost (75 %)\nupdates 1 to 100"));
    EXPECT_THAT(figure,
                HasSubstr("<title>rank 1\n32 of 64 units of cost (50 %)\nupdates 101 to 200"));
    EXPECT_EQ(occurrences(figure, "class=\"part "), 4);
}

TEST(AllocationChartTest, ARankWithoutWorkIsNotDrawn) {
    const std::string figure = allocation_chart(
        {.title = "Allocation", .allocations = {{1, {8, 0}}}, .last_update = 5, .ranks = {}});

    EXPECT_EQ(occurrences(figure, "class=\"part "), 1);
}

TEST(AllocationChartTest, ManyChangesMakeASmallFigureThatEndsWithTheLast) {
    AllocationChart chart{"Allocation", {}, 1000000, {}};
    for (int update = 1; update <= 1000000; update += 10)
        chart.allocations.push_back({update, std::vector<std::int64_t>(32, 1 + update % 7)});

    const std::string figure = allocation_chart(chart);

    EXPECT_LT(figure.size(), 1000000U);
    EXPECT_THAT(figure, HasSubstr(" to 1000000</title>"));
}

TEST(AllocationChartTest, TheNumberOfRanksMayChange) {
    const std::string figure = allocation_chart({.title = "Allocation",
                                                 .allocations = {{1, {4, 4}}, {11, {2, 2, 4}}},
                                                 .last_update = 20,
                                                 .ranks = {}});

    EXPECT_EQ(occurrences(figure, "class=\"part "), 5);
}

TEST(AllocationChartTest, WithoutAllocationsThereIsNoFigure) {
    EXPECT_EQ(allocation_chart({.title = "Allocation", .allocations = {}, .ranks = {}}), "");
    EXPECT_EQ(allocation_chart({.title = "Allocation", .allocations = {{1, {0}}}, .ranks = {}}),
              "");
}

}  // namespace
}  // namespace hetseq
