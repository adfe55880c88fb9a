#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// Cuts `units` >= 0 over the ranks so that the last one to finish finishes as early as possible:
/// exact for integers, slow ranks may get 0. Ties go to the lower rank. The sum of the result is
/// `units`. Throws BadConfig when no rank takes work or the limits hold less than `units`.
std::vector<std::int64_t> allocate(std::span<const StepCost> costs, std::int64_t units);

/// Time of an update cut so: the slowest rank's [ms].
double makespan_ms(std::span<const StepCost> costs, std::span<const std::int64_t> allocation);

/// Lower bound of any cut's time, without communication or memory limits, fractions of units and of
/// micro-batches allowed [ms]: min { T : sum_r f_r(T) >= units }, f_r(T) = max(0, T - A_r) rate_r
/// for a line and the table's inverse for a table. Infinite where no rank takes work.
double bound_ms(std::span<const StepCost> costs, std::int64_t units);

}  // namespace hetseq
