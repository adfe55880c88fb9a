#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// Cuts `units` >= 0 over the ranks so that the last one finishes as early as possible. Exact for
/// integers; slow ranks may get 0. Ties go to the lower rank. The sum of the result is `units`.
/// Throws BadConfig if no rank takes work or the limits add up to less than `units`.
std::vector<std::int64_t> allocate(std::span<const StepCost> costs, std::int64_t units);

/// Time of an update with this cut: that of the slowest rank [ms].
double makespan_ms(std::span<const StepCost> costs, std::span<const std::int64_t> allocation);

/// Lower bound of any cut's time [ms], without communication or memory limits, and with fractions
/// of units and micro-batches allowed: min { T : sum_r f_r(T) >= units }, f_r(T) = max(0, T - A_r)
/// rate_r for a line and the table's inverse for a table. Infinite where no rank takes work.
double bound_ms(std::span<const StepCost> costs, std::int64_t units);

}  // namespace hetseq
