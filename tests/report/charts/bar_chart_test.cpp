#include "hetseq/report/charts/bar_chart.hpp"

#include <gtest/gtest.h>

#include "report/occurrences.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::occurrences;
using testing::HasSubstr;
using testing::Not;

TEST(BarChartTest, PartsFollowEachOtherToTheSum) {
    const BarChart chart{
        .title = "Time",
        .bars = {{"rank 0", {{30, 0, "computing: 30 ms"}, {10, 1, "waiting: 10 ms"}}}},
        .longest = 80};

    const std::string figure = bar_chart(chart);

    // 370 of the drawing's units are 80 ms, from 6 on.
    EXPECT_THAT(figure, HasSubstr("x=\"6\" y=\"18\" width=\"138.8\""));
    EXPECT_THAT(figure, HasSubstr("x=\"144.8\" y=\"18\" width=\"46.3\""));
    EXPECT_THAT(figure, HasSubstr("<title>rank 0\nwaiting: 10 ms</title>"));
    EXPECT_THAT(figure, HasSubstr(">40</text>"));
}

TEST(BarChartTest, LongLabelsAreCutBetweenCharacters) {
    std::string name;
    for (int i = 0; i < 100; ++i)
        name += "\xC3\xA4";

    const std::string figure = bar_chart({.title = "Time", .bars = {{name, {{1, 0, "x"}}}}});

    std::string shown;
    for (int i = 0; i < 49; ++i)
        shown += "\xC3\xA4";
    EXPECT_THAT(figure, HasSubstr(">" + shown + "\xE2\x80\xA6</text>"));
}

TEST(BarChartTest, ManyBarsAreThinAndAllThere) {
    BarChart chart{.title = "Time"};
    for (int rank = 0; rank < 256; ++rank)
        chart.bars.push_back(
            {"rank " + std::to_string(rank), {{1.0 + rank, 0, "computing"}}, std::to_string(rank)});

    const std::string figure = bar_chart(chart);

    EXPECT_EQ(occurrences(figure, "<title>rank "), 256);
    EXPECT_THAT(figure, HasSubstr("height=\"9\""));
    EXPECT_THAT(figure, HasSubstr(">255</text>"));
}

TEST(BarChartTest, NothingToDrawIsNoError) {
    EXPECT_EQ(bar_chart({.title = "Time"}), "");
    EXPECT_THAT(bar_chart({.title = "Time", .bars = {{"rank 0", {}}}}), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace hetseq
