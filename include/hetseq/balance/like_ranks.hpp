#pragma once

#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// Ranks of one kind and one micro-batch are given one cost: the one with the median time for a
/// full micro-batch, of an even number the faster of the middle two, for what disturbs a
/// measurement only makes it slower. A calibration of seconds tells like devices apart by their
/// neighbours' doing. `kinds`: by rank, the same number for like devices.
std::vector<StepCost> pool_like_ranks(std::span<const StepCost> costs, std::span<const int> kinds);

}  // namespace hetseq
