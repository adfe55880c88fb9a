#include "hetseq/report/charts/series.hpp"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <gmock/gmock.h>

namespace hetseq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double gap = std::numeric_limits<double>::quiet_NaN();

TEST(SeriesTest, FewPointsStay) {
    const Series series{{1, 2, 3}, {5, 4, 6}};

    const Series drawn = downsampled(series, {1, 3}, 100);

    EXPECT_EQ(drawn.x, series.x);
    EXPECT_EQ(drawn.y, series.y);
}

TEST(SeriesTest, OfAColumnTheLowestAndTheHighestStayInTheirOrder) {
    const Series series{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 9, 1, 5, 4, 4, 8, 7}};

    const Series drawn = downsampled(series, {0, 8}, 2);

    EXPECT_THAT(drawn.x, ElementsAre(0, 1, 4, 6, 7));
    EXPECT_THAT(drawn.y, ElementsAre(0, 9, 4, 8, 7));
}

TEST(SeriesTest, ASpikeAmongAMillionPointsIsKept) {
    Series series;
    std::mt19937 random(1);
    for (int i = 1; i <= 1000000; ++i)
        series.add(i, std::uniform_real_distribution<double>(1, 2)(random));
    series.y[765432] = 100;
    series.y[123456] = -100;

    const Series drawn = downsampled(series, {1, 1e6}, 370);

    EXPECT_LE(drawn.size(), 2 * 371 + 2U);
    const Interval range = finite_range(drawn.y).value();
    EXPECT_EQ(range.low, -100);
    EXPECT_EQ(range.high, 100);
    EXPECT_EQ(drawn.x.front(), 1);
    EXPECT_EQ(drawn.x.back(), 1e6);
    EXPECT_TRUE(std::is_sorted(drawn.x.begin(), drawn.x.end()));
}

TEST(SeriesTest, AColumnOfGapsIsOneAndOthersHideThem) {
    const Series series{{0, 1, 2, 3, 4, 5}, {1, gap, gap, gap, 2, gap}};

    const Series drawn = downsampled(series, {0, 6}, 3);

    EXPECT_THAT(drawn.x, ElementsAre(0, 2, 4, 5));
    EXPECT_TRUE(std::isnan(drawn.y[1]));
    EXPECT_TRUE(std::isnan(drawn.y[3]));  // the last point of all
}

TEST(SeriesTest, MeansAreOfTheFiniteValues) {
    const Series series{{0, 1, 2, 3, 4, 5, 9}, {1, 3, gap, gap, gap, 7, 100}};

    const Series means = column_means(series, {0, 6}, 3);

    EXPECT_THAT(means.x, ElementsAre(0.5, 2, 5));
    EXPECT_EQ(means.y[0], 2);
    EXPECT_TRUE(std::isnan(means.y[1]));
    EXPECT_EQ(means.y[2], 7);
}

TEST(SeriesTest, PointsOutsideTheRangeAreLeftOut) {
    EXPECT_THAT(downsampled({{0, 5, 10}, {1, 2, 3}}, {4, 6}, 10).x, ElementsAre(5));
    EXPECT_THAT(downsampled({{}, {}}, {0, 0}, 10).x, IsEmpty());
    EXPECT_THAT(downsampled({{3}, {1}}, {3, 3}, 10).x, ElementsAre(3));
}

TEST(SeriesTest, TheRangeIsOfTheFiniteValues) {
    const double infinity = std::numeric_limits<double>::infinity();

    const auto range = finite_range({gap, 3, -1, infinity, 2});

    ASSERT_TRUE(range);
    EXPECT_EQ(range->low, -1);
    EXPECT_EQ(range->high, 3);
    EXPECT_FALSE(finite_range({gap, infinity}));
    EXPECT_FALSE(finite_range({}));
}

TEST(SeriesTest, TheNearestPointIsFound) {
    const Series series{{10, 20, 40}, {0, 0, 0}};

    EXPECT_EQ(nearest_point(series, -5), 0U);
    EXPECT_EQ(nearest_point(series, 15), 0U);
    EXPECT_EQ(nearest_point(series, 16), 1U);
    EXPECT_EQ(nearest_point(series, 31), 2U);
    EXPECT_EQ(nearest_point(series, 1000), 2U);
    EXPECT_FALSE(nearest_point({}, 1));
}

}  // namespace
}  // namespace hetseq
