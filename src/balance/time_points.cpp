#include "hetseq/balance/time_points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hetseq {

namespace {

constexpr double least_unit_ms = 1e-6;  // a share costs something, however flat the points are

std::vector<StepSample> samples_of(std::span<const TimePoint> points, std::int64_t micro_batch) {
    std::vector<StepSample> samples;
    for (const TimePoint& point : points) {
        const double pieces = std::ceil(point.units / static_cast<double>(micro_batch));
        samples.push_back({point.units, static_cast<std::int64_t>(pieces), point.ms});
    }
    return samples;
}

}  // namespace

LineFit fit_times(std::span<const TimePoint> points, std::int64_t micro_batch) {
    LineFit fit = fit_line(samples_of(points, micro_batch), micro_batch);
    fit.cost.unit_ms = std::max(fit.cost.unit_ms, least_unit_ms);
    return fit;
}

StepCost cost_of_times(std::span<const TimePoint> points, std::int64_t micro_batch) {
    const StepCost cost = fit_step_cost(
        samples_of(points, micro_batch), micro_batch, std::numeric_limits<std::int64_t>::max());
    const bool is_table = !cost.table.empty() && cost.table.unit_ms() >= least_unit_ms;
    return is_table ? cost : fit_times(points, micro_batch).cost;
}

}  // namespace hetseq
