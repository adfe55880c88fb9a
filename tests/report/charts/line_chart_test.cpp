#include "hetseq/report/charts/line_chart.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "report/occurrences.hpp"
#include <gmock/gmock.h>

namespace hetseq {
namespace {

using test::occurrences;
using testing::HasSubstr;
using testing::Not;

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

Curve curve(const std::string& label, Series points) {
    return {label, 0, Stroke::solid, std::move(points)};
}

TEST(LineChartTest, ToolTipsTellTheValues) {
    const std::string figure = line_chart(
        {.title = "Loss",
         .curves = {curve("a", {{1, 2, 3}, {0.5, 0.25, 0.125}}), curve("b", {{1, 3}, {7, 8}})}});

    EXPECT_THAT(figure, HasSubstr("<title>update 1\na: 0.5\nb: 7</title>"));
    EXPECT_THAT(figure, HasSubstr("<title>update 3\na: 0.125\nb: 8</title>"));
    EXPECT_THAT(figure, HasSubstr("update 2\na: 0.25\nb: 7 (update 1)"));
    EXPECT_EQ(occurrences(figure, "class=\"tip\""), 3);
}

TEST(LineChartTest, TextsAreEscaped) {
    const std::string figure = line_chart(
        {.title = "<Loss>", .curves = {curve("a&b", {{1, 2}, {1, 2}}), curve("c", {{1}, {1}})}});

    EXPECT_THAT(figure, HasSubstr("&lt;Loss&gt;"));
    EXPECT_THAT(figure, HasSubstr("a&amp;b"));
    EXPECT_THAT(figure, Not(HasSubstr("a&b")));
}

TEST(LineChartTest, AGapInterruptsTheCurve) {
    const std::string figure =
        line_chart({.title = "Loss", .curves = {curve("a", {{1, 2, 3, 4}, {1, no_value, 2, 3}})}});
    const auto begin = figure.find("class=\"curve c0\" d=\"");
    const std::string path = figure.substr(begin, figure.find("/>", begin) - begin);

    EXPECT_EQ(occurrences(path, "M"), 2);
    EXPECT_EQ(occurrences(path, "L"), 1);
    EXPECT_THAT(figure, Not(HasSubstr("nan\"")));
}

TEST(LineChartTest, WithoutAFiniteValueThereIsNoFigure) {
    EXPECT_EQ(line_chart({.title = "Loss", .curves = {curve("a", {{1}, {no_value}})}}), "");
    EXPECT_EQ(line_chart({.title = "Loss"}), "");
}

TEST(LineChartTest, ValuesThatDifferMuchGetALogarithmicAxisUnlessOneIsZero) {
    const Series falling{{1, 2, 3}, {10, 1, 0.01}};
    const Series to_zero{{1, 2, 3}, {10, 1, 0}};

    EXPECT_THAT(line_chart({.title = "Loss", .curves = {curve("a", falling)}}),
                HasSubstr(">0.1</text>"));
    EXPECT_THAT(line_chart({.title = "Loss", .curves = {curve("a", to_zero)}}),
                Not(HasSubstr(">0.1</text>")));
}

TEST(LineChartTest, AMillionPointsMakeASmallFigureOfABandAndMeans) {
    Series points;
    for (int i = 1; i <= 1000000; ++i)
        points.add(i, 1 + i % 17);

    const std::string figure = line_chart({.title = "Loss", .curves = {curve("a", points)}});

    EXPECT_LT(figure.size(), 60000U);
    EXPECT_THAT(figure, HasSubstr("class=\"band c0\""));
    EXPECT_THAT(figure, HasSubstr("class=\"curve c0\""));
}

}  // namespace
}  // namespace hetseq
