#include "hetseq/plan/slowest_rank.hpp"

#include <algorithm>
#include <cmath>

namespace hetseq {

namespace {

constexpr double largest_variate = 6;
constexpr double variate_step = 0.5;

double normal_distribution(double z) {
    return std::erfc(-z / std::sqrt(2)) / 2;
}

// sqrt(ln(1 + spread^2)): the logarithm's standard deviation.
double sigma_of(double spread) {
    return std::sqrt(std::log1p(spread * spread));
}

// The logarithm of the probability that all ranks are done at exp(`log_ms`).
double log_all_done(std::span<const LikeRanks> groups, double sigma, double log_ms) {
    double sum = 0;
    for (const LikeRanks& group : groups)
        if (group.ranks > 0 && group.mean_ms > 0) {
            const double z = (log_ms - std::log(group.mean_ms)) / sigma + sigma / 2;
            sum += static_cast<double>(group.ranks) * std::log(normal_distribution(z));
        }
    return sum;
}

}  // namespace

std::vector<QuadraturePoint> quadrature_points(double spread) {
    if (spread <= 0)
        return {{0.5, 1}};
    std::vector<QuadraturePoint> points;
    double sum = 0;
    for (double z = -largest_variate; z <= largest_variate; z += variate_step) {
        points.push_back({normal_distribution(z), std::exp(-z * z / 2)});
        sum += points.back().weight;
    }
    for (QuadraturePoint& point : points)
        point.weight /= sum;
    return points;
}

double slowest_ms(std::span<const LikeRanks> groups, double spread, double quantile) {
    double slowest_mean = 0;
    for (const LikeRanks& group : groups)
        if (group.ranks > 0)
            slowest_mean = std::max(slowest_mean, group.mean_ms);
    const double sigma = sigma_of(spread);
    if (slowest_mean == 0 || sigma == 0)
        return slowest_mean;
    // The quantile of one rank lies at most 7 standard deviations below the mean; that of the
    // slowest of 16,384 ranks lies at most 9 above.
    double below = std::log(slowest_mean) - sigma * (sigma / 2 + 7);
    double above = std::log(slowest_mean) + sigma * 9;
    const double target = std::log(quantile);
    for (int i = 0; i < 45; ++i) {
        const double middle = (below + above) / 2;
        (log_all_done(groups, sigma, middle) < target ? below : above) = middle;
    }
    return std::exp(above);
}

}  // namespace hetseq
