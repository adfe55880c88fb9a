#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetseq {

/// Ranks with the same mean time.
struct LikeRanks {
    std::int64_t ranks = 0;
    double mean_ms = 0;
};

/// A value of a random variable, and its weight.
struct QuadraturePoint {
    double quantile = 0;  // in (0, 1)
    double weight = 0;    // they sum to 1
};

/// Points of the quadrature below: trapezoids over a normal variate, whose error vanishes faster
/// than any power of the step; a single point if there is no spread.
std::vector<QuadraturePoint> quadrature_points(double spread);

/// The time of the slowest rank [ms] that a share `quantile` of updates does not exceed. Each
/// rank's time is its mean times an independent lognormal factor of mean 1 and coefficient of
/// variation `spread`; the product of the ranks' distributions is inverted. Ranks of mean 0 take no
/// part; the result is 0 if there are no others.
double slowest_ms(std::span<const LikeRanks> groups, double spread, double quantile);

}  // namespace hetseq
