#pragma once

#include <cstdint>
#include <span>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// One measurement: `units` > 0, computed in `micro_batches` > 0 pieces, took `ms` > 0.
struct StepSample {
    double units = 0;  // a mean over updates may be no whole number
    std::int64_t micro_batches = 1;
    double ms = 0;
};

/// The cost of a rank that was measured at `samples` (at least one), with micro-batches of at most
/// `micro_batch` >= 0 units (0: a rank without work) and at most `max_units` an update.
///
/// Repeats of one point count as their median. A, a, c >= 0 minimise the sum of squared relative
/// errors (nonnegative least squares, Lawson & Hanson, Solving Least Squares Problems, 1974,
/// chapter 23; with three unknowns every set of nonzero ones is tried). What the samples cannot
/// tell apart is attributed to c first, then a, then A: one point gives c alone. Where all samples
/// are single micro-batches, the fixed part becomes a, so that several micro-batches cost several
/// times as much. The line may miss a point by more than 5 % and by more than twice the standard
/// error of the point's median (0 is assumed where no point was repeated). Then the points that
/// `micro_batch` itself produces (units in ceil(units / micro_batch) pieces) become a table, if
/// there are at least two; its time at 0 units lies on the line through the first two points.
/// Throws InternalError for invalid samples.
StepCost fit_step_cost(std::span<const StepSample> samples,
                       std::int64_t micro_batch,
                       std::int64_t max_units);

/// The line alone, with micro-batches of at most `micro_batch` > 0 units.
struct LineFit {
    StepCost cost;
    double worst_error = 0;  // largest |fitted / measured - 1|
};
LineFit fit_line(std::span<const StepSample> samples, std::int64_t micro_batch);

}  // namespace hetseq
