#pragma once

#include <cstdint>
#include <span>

#include "hetseq/balance/fit_step_cost.hpp"

namespace hetseq {

/// A measured time of a rank's part of an update.
struct TimePoint {
    double units = 0;
    double ms = 0;
};

/// The line through `points` (units and ms above 0, at least one), each computed in micro-batches
/// of at most `micro_batch` units: `fit_line`, but a unit always costs something.
LineFit fit_times(std::span<const TimePoint> points, std::int64_t micro_batch);

/// Fits that line, or makes a table where the line misses a point by more than 5 %. Units are whole
/// numbers.
StepCost cost_of_times(std::span<const TimePoint> points, std::int64_t micro_batch);

}  // namespace hetseq
