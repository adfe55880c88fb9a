#include "hetseq/plan/time_points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hetseq {

namespace {

constexpr double smallest_unit_ms = 1e-6;  // a share costs something, however flat the points are

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
    fit.cost.unit_ms = std::max(fit.cost.unit_ms, smallest_unit_ms);
    return fit;
}

StepCost cost_of_times(std::span<const TimePoint> points, std::int64_t micro_batch) {
    StepCost cost = fit_step_cost(
        samples_of(points, micro_batch), micro_batch, std::numeric_limits<std::int64_t>::max());
    if (cost.table.empty() || cost.table.unit_ms() < smallest_unit_ms)
        return fit_times(points, micro_batch).cost;
    cost.micro_batch = std::min(micro_batch, cost.table.points().back().units);
    return cost;
}

}  // namespace hetseq
