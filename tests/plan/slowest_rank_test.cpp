#include "hetseq/plan/slowest_rank.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace hetseq {
namespace {

using Groups = std::vector<LikeRanks>;

// The mean over updates, by the quadrature that the simulator uses.
double mean_slowest_ms(const Groups& groups, double spread) {
    double mean = 0;
    for (const auto& [quantile, weight] : quadrature_points(spread))
        mean += weight * slowest_ms(groups, spread, quantile);
    return mean;
}

TEST(SlowestRankTest, WithoutSpreadIsTheSlowestMean) {
    EXPECT_DOUBLE_EQ(mean_slowest_ms(Groups{{3, 5}, {1, 7}, {2, 0}}, 0), 7);
    EXPECT_DOUBLE_EQ(mean_slowest_ms(Groups{{3, 0}}, 0.5), 0);
}

TEST(SlowestRankTest, OneRankHasItsMean) {
    for (double spread : {0.01, 0.1, 0.5, 1.0})
        EXPECT_NEAR(mean_slowest_ms(Groups{{1, 5}}, spread), 5, 5e-5) << spread;
}

// E max(X, Y) = 2 E[X; X > Y] = 2 Phi(sigma / sqrt 2) for independent lognormals of mean 1.
TEST(SlowestRankTest, TwoLikeRanksFollowTheFormula) {
    for (double spread : {0.01, 0.1, 0.5, 1.0}) {
        const double sigma = std::sqrt(std::log1p(spread * spread));
        const double expected = 1 + std::erf(sigma / 2);

        EXPECT_NEAR(mean_slowest_ms(Groups{{2, 1}}, spread), expected, 1e-5) << spread;
        EXPECT_NEAR(mean_slowest_ms(Groups{{1, 1}, {1, 1}, {5, 0}}, spread), expected, 1e-5);
    }
}

TEST(SlowestRankTest, UnlikeRanksAgreeWithASample) {
    const Groups groups{{4, 10}, {8, 9}, {1, 11}};
    const double sigma = std::sqrt(std::log1p(0.01));
    std::mt19937 random(3);
    std::normal_distribution<double> normal;
    double sum = 0;
    const int updates = 200000;
    for (int update = 0; update < updates; ++update) {
        double slowest = 0;
        for (const LikeRanks& group : groups)
            for (int rank = 0; rank < group.ranks; ++rank)
                slowest = std::max(
                    slowest, group.mean_ms * std::exp(sigma * normal(random) - sigma * sigma / 2));
        sum += slowest;
    }

    EXPECT_NEAR(mean_slowest_ms(groups, 0.1), sum / updates, 0.01);
}

TEST(SlowestRankTest, ManyRanksWaitLonger) {
    double last = 1;
    for (std::int64_t ranks : {2, 16, 256, 16384}) {
        const double slowest = mean_slowest_ms(Groups{{ranks, 1}}, 0.05);
        EXPECT_GT(slowest, last);
        last = slowest;
    }
    // The largest of 16,384 normal variates is 3.97 standard deviations out, in the mean.
    EXPECT_NEAR(std::log(last), 3.97 * 0.05, 0.005);
}

}  // namespace
}  // namespace hetseq
