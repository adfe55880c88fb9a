#include "hetseq/balance/fit_step_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/median.hpp"

namespace hetseq {

namespace {

constexpr double tolerated_error = 0.05;

using Line = std::array<double, 3>;  // A, a, c [ms]
using Mask = std::array<bool, 3>;    // which of them may be nonzero

// The sets of nonzero A, a, c, preferred ones first. The set with only A is missing, since no
// device computes any number of units in the same time.
constexpr std::array<Mask, 6> masks{{{false, false, true},
                                     {false, true, true},
                                     {false, true, false},
                                     {true, false, true},
                                     {true, true, true},
                                     {true, true, false}}};

Line columns(const StepSample& point) {
    return {1, static_cast<double>(point.micro_batches), point.units};
}

double line_ms(const Line& line, const StepSample& point) {
    const Line column = columns(point);
    return line[0] * column[0] + line[1] * column[1] + line[2] * column[2];
}

double relative_error(const Line& line, const StepSample& point) {
    return line_ms(line, point) / point.ms - 1;
}

// Times by units and micro-batches.
std::map<std::pair<double, std::int64_t>, std::vector<double>> repeats_of(
    std::span<const StepSample> samples) {
    std::map<std::pair<double, std::int64_t>, std::vector<double>> repeats;
    for (const StepSample& sample : samples) {
        HETSEQ_ASSERT(sample.units > 0 && sample.micro_batches > 0);
        HETSEQ_ASSERT(std::isfinite(sample.ms) && sample.ms > 0);
        repeats[{sample.units, sample.micro_batches}].push_back(sample.ms);
    }
    return repeats;
}

std::vector<StepSample> medians(std::span<const StepSample> samples) {
    std::vector<StepSample> points;
    for (const auto& [point, ms] : repeats_of(samples))
        points.push_back({point.first, point.second, median(ms)});
    return points;
}

// Standard deviation of two or more values, divided by their median. A few values are estimated by
// their range (Tippett, Biometrika 17 (1925) 364), more by their median absolute deviation.
double relative_sigma(std::vector<double> values) {
    constexpr std::array<double, 5> ranges{0, 0, 1.128, 1.693, 2.059};  // of 2, 3, 4 normal values
    const double middle = median(values);
    if (values.size() < ranges.size()) {
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        return (*most - *least) / ranges[values.size()] / middle;
    }
    return robust_sigma(std::move(values), middle) / middle;
}

// Relative standard errors of the medians, in their order. A point that has less noise or was not
// repeated gets the points' typical noise. 0 if no point was repeated.
std::vector<double> standard_errors(std::span<const StepSample> samples) {
    const auto repeats = repeats_of(samples);
    std::vector<double> sigmas;
    for (const auto& [point, ms] : repeats)
        if (ms.size() > 1)
            sigmas.push_back(relative_sigma(ms));
    const double typical = sigmas.empty() ? 0 : median(sigmas);
    std::vector<double> errors;
    for (const auto& [point, ms] : repeats) {
        const double sigma = ms.size() > 1 ? std::max(typical, relative_sigma(ms)) : typical;
        errors.push_back(error_of_median(sigma, ms.size()));
    }
    return errors;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum += a[i] * b[i];
    return sum;
}

// Least squares of the relative errors with the coefficients of `mask`, by the modified
// Gram-Schmidt method. Empty if the points do not determine them.
std::optional<Line> least_squares(const std::vector<StepSample>& points, const Mask& mask) {
    std::array<std::vector<double>, 3> basis;
    std::array<Line, 3> upper{};  // of the factors Q R
    Line projected{};             // Q^T 1
    std::vector<double> rest(points.size(), 1);
    for (std::size_t j = 0; j < 3; ++j) {
        if (!mask[j])
            continue;
        std::vector<double>& column = basis[j];
        for (const StepSample& point : points)
            column.push_back(columns(point)[j] / point.ms);
        const double length = std::sqrt(dot(column, column));
        for (std::size_t i = 0; i < j; ++i) {
            if (!mask[i])
                continue;
            upper[i][j] = dot(basis[i], column);
            for (std::size_t p = 0; p < points.size(); ++p)
                column[p] -= upper[i][j] * basis[i][p];
        }
        upper[j][j] = std::sqrt(dot(column, column));
        if (upper[j][j] <= 1e-9 * length)
            return std::nullopt;
        for (double& value : column)
            value /= upper[j][j];
        projected[j] = dot(column, rest);
        for (std::size_t p = 0; p < points.size(); ++p)
            rest[p] -= projected[j] * column[p];
    }
    Line line{};
    for (std::size_t j = 3; j-- > 0;) {
        if (!mask[j])
            continue;
        line[j] = projected[j];
        for (std::size_t k = j + 1; k < 3; ++k)
            line[j] -= upper[j][k] * line[k];
        line[j] /= upper[j][j];
    }
    return line;
}

Line best_line(const std::vector<StepSample>& points) {
    Line best{};
    auto least = static_cast<double>(points.size());  // of the line that is 0 everywhere
    for (const Mask& mask : masks) {
        const std::optional<Line> line = least_squares(points, mask);
        if (!line || *std::min_element(line->begin(), line->end()) < 0)
            continue;
        double error = 0;
        for (const StepSample& point : points)
            error += std::pow(relative_error(*line, point), 2);
        // A line with other coefficients must be better by more than rounding.
        if (error < least - 1e-18 * static_cast<double>(points.size())) {
            least = error;
            best = *line;
        }
    }
    return best;
}

// The points that occur in an update with this micro-batch.
std::vector<CostPoint> own_points(const std::vector<StepSample>& points, std::int64_t micro_batch) {
    std::vector<CostPoint> own;
    for (const StepSample& point : points) {
        const auto units = static_cast<std::int64_t>(point.units);
        if (point.micro_batches == 1 + (units - 1) / micro_batch)
            own.push_back({units, point.ms});
    }
    return own;
}

// The line through the first two points at 0 units; at most the first point's time.
double start_ms(const std::vector<CostPoint>& points) {
    const double slope =
        (points[1].ms - points[0].ms) / static_cast<double>(points[1].units - points[0].units);
    return std::clamp(
        points[0].ms - slope * static_cast<double>(points[0].units), 0.0, points[0].ms);
}

// True if the line misses no point by more than 5 % beyond what its noise explains.
bool is_line(const StepCost& cost, std::span<const StepSample> samples) {
    const Line line{cost.start_ms, cost.micro_batch_ms, cost.unit_ms};
    const std::vector<StepSample> points = medians(samples);
    const std::vector<double> errors = standard_errors(samples);
    for (std::size_t i = 0; i < points.size(); ++i)
        if (std::abs(relative_error(line, points[i])) > tolerated_error + 2 * errors[i])
            return false;
    return true;
}

}  // namespace

LineFit fit_line(std::span<const StepSample> samples, std::int64_t micro_batch) {
    HETSEQ_ASSERT(micro_batch > 0 && !samples.empty());
    const Line line = best_line(medians(samples));
    LineFit fit{{.start_ms = line[0],
                 .micro_batch_ms = line[1],
                 .unit_ms = line[2],
                 .micro_batch = micro_batch},
                0};
    for (const StepSample& point : medians(samples))
        fit.worst_error = std::max(fit.worst_error, std::abs(relative_error(line, point)));
    return fit;
}

StepCost fit_step_cost(std::span<const StepSample> samples,
                       std::int64_t micro_batch,
                       std::int64_t max_units) {
    if (micro_batch == 0)
        return {.micro_batch = 0, .max_units = max_units};
    LineFit fit = fit_line(samples, micro_batch);
    fit.cost.max_units = max_units;
    std::vector<CostPoint> own = own_points(medians(samples), micro_batch);
    if (is_line(fit.cost, samples) || own.size() < 2)
        return fit.cost;
    own.push_back({0, start_ms(own)});
    fit.cost.table = StepTable(std::move(own));
    return fit.cost;
}

}  // namespace hetseq
