#include "hetseq/balance/time_points.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hetseq {

LineFit fit_times(std::span<const TimePoint> points, std::int64_t micro_batch) {
    constexpr double least_unit_ms = 1e-6;  // a share costs something, however flat the points are
    std::vector<StepSample> samples;
    for (const TimePoint& point : points) {
        const double pieces = std::ceil(point.units / static_cast<double>(micro_batch));
        samples.push_back({point.units, static_cast<std::int64_t>(pieces), point.ms});
    }
    LineFit fit = fit_line(samples, micro_batch);
    fit.cost.unit_ms = std::max(fit.cost.unit_ms, least_unit_ms);
    return fit;
}

}  // namespace hetseq
