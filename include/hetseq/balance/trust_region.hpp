#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// The best allocation that one step from `current` reaches on the way to `best` (the optimum, of
/// the same sum): a rank's units change by at most `factor` > 1. A prediction is good only near
/// what was measured, and a small step that followed bad measurements can be undone quickly.
///
/// There are three exceptions. A rank that `best` leaves without work goes to 0 at once, since its
/// time is then known. A rank that had no work starts with one micro-batch. And where the step
/// would still take more than twice the optimum's time, or the others cannot take the rest, the
/// step goes all the way.
std::vector<std::int64_t> step_towards(std::span<const std::int64_t> best,
                                       std::span<const std::int64_t> current,
                                       std::span<const StepCost> costs,
                                       double factor);

}  // namespace hetseq
