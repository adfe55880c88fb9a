#include "hetseq/balance/time_points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace hetseq {

namespace {

using Vector = std::array<double, 3>;  // c, a, A
using Matrix = std::array<Vector, 3>;

constexpr double least_unit_ms = 1e-6;   // a share costs something, however flat the points are
constexpr double smallest_pivot = 1e-9;  // of columns scaled to length 1

// What c, a and A contribute to the time of `units`, over that time.
Vector features(const TimePoint& point, std::int64_t micro_batch) {
    return {point.units / point.ms,
            std::ceil(point.units / static_cast<double>(micro_batch)) / point.ms,
            1 / point.ms};
}

double error_of(std::span<const TimePoint> points, std::int64_t micro_batch, const Vector& values) {
    double sum = 0;
    for (const TimePoint& point : points) {
        const Vector x = features(point, micro_batch);
        const double error = x[0] * values[0] + x[1] * values[1] + x[2] * values[2] - 1;
        sum += error * error;
    }
    return sum;
}

// Gauss's elimination without exchange: the matrix is symmetric and semi-definite, and `used`
// alone takes part. Nothing where columns depend on each other.
std::optional<Vector> solve(Matrix matrix, Vector right, const std::array<bool, 3>& used) {
    for (std::size_t k = 0; k < 3; ++k) {
        if (!used[k])
            continue;
        if (matrix[k][k] < smallest_pivot)
            return std::nullopt;
        for (std::size_t i = k + 1; i < 3; ++i) {
            const double factor = matrix[i][k] / matrix[k][k];
            for (std::size_t j = k; j < 3; ++j)
                matrix[i][j] -= factor * matrix[k][j];
            right[i] -= factor * right[k];
        }
    }
    Vector values{};
    for (std::size_t k = 3; k-- > 0;) {
        if (!used[k])
            continue;
        double rest = right[k];
        for (std::size_t j = k + 1; j < 3; ++j)
            rest -= matrix[k][j] * values[j];
        values[k] = rest / matrix[k][k];
    }
    return values;
}

// Least squares over the `used` columns, each scaled to length 1; nothing where a value would be
// negative.
std::optional<Vector> least_squares(std::span<const TimePoint> points,
                                    std::int64_t micro_batch,
                                    const std::array<bool, 3>& used) {
    Vector length{};
    for (const TimePoint& point : points)
        for (std::size_t k = 0; k < 3; ++k)
            length[k] += std::pow(features(point, micro_batch)[k], 2);
    Matrix matrix{};
    Vector right{};
    for (const TimePoint& point : points) {
        Vector x = features(point, micro_batch);
        for (std::size_t k = 0; k < 3; ++k)
            x[k] /= std::sqrt(length[k]);
        for (std::size_t i = 0; i < 3; ++i) {
            right[i] += x[i];
            for (std::size_t j = 0; j < 3; ++j)
                matrix[i][j] += x[i] * x[j];
        }
    }
    std::optional<Vector> values = solve(matrix, right, used);
    if (!values || *std::min_element(values->begin(), values->end()) < 0)
        return std::nullopt;
    for (std::size_t k = 0; k < 3; ++k)
        (*values)[k] /= std::sqrt(length[k]);
    return values;
}

}  // namespace

FittedTimes fit_times(std::span<const TimePoint> points, std::int64_t micro_batch) {
    Vector best{};
    double least = std::numeric_limits<double>::infinity();
    // Few unknowns: every set of positive ones is tried, those with fewer and with c first.
    for (const int set : {1, 2, 4, 3, 5, 6, 7}) {
        const std::array<bool, 3> used{(set & 1) != 0, (set & 2) != 0, (set & 4) != 0};
        const auto values = least_squares(points, micro_batch, used);
        if (!values)
            continue;
        const double error = error_of(points, micro_batch, *values);
        if (error < least - 1e-12) {
            least = error;
            best = *values;
        }
    }
    FittedTimes fitted{{.start_ms = best[2],
                        .micro_batch_ms = best[1],
                        .unit_ms = std::max(best[0], least_unit_ms),
                        .micro_batch = micro_batch},
                       0};
    for (const TimePoint& point : points)
        fitted.worst_error = std::max(
            fitted.worst_error, std::abs(std::sqrt(error_of({&point, 1}, micro_batch, best))));
    return fitted;
}

}  // namespace hetseq
