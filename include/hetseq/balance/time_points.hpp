#pragma once

#include <cstdint>
#include <span>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// A measured time of a rank's part of an update.
struct TimePoint {
    double units = 0;
    double ms = 0;
};

struct FittedTimes {
    StepCost cost;
    double worst_error = 0;  // largest |fitted / measured - 1|
};

/// The A, a, c >= 0 of T(b) = A + ceil(b / micro_batch) a + b c with the least squared relative
/// error over `points` (units and ms above 0, at least one). What the points cannot tell apart is
/// given to c before a, and to a before A: a single point gives a line through the origin, points
/// within one micro-batch no A.
FittedTimes fit_times(std::span<const TimePoint> points, std::int64_t micro_batch);

}  // namespace hetseq
