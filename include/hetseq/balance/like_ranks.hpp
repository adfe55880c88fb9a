#pragma once

#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// Ranks of one kind and one micro-batch get one cost: the one with the median time for a full
/// micro-batch (of an even number, the faster of the middle two), because a disturbance only makes
/// a measurement slower. In a calibration of seconds, like devices differ only because of their
/// neighbours. `kinds`: by rank, the same number for like devices.
std::vector<StepCost> pool_like_ranks(std::span<const StepCost> costs, std::span<const int> kinds);

}  // namespace hetseq
