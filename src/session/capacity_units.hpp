#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/balance/step_cost.hpp"
#include "hetseq/state/allocation_log.hpp"
#include "hetseq/train/shares/share_plan.hpp"

namespace hetseq {

/// `capacities` of padded tokens, in units.
std::vector<std::int64_t> in_units(const std::vector<std::int64_t>& capacities,
                                   const RaggedWork& work);

/// With the micro-batches that the recorded run had, which its results' roundings depend on.
std::vector<StepCost> recorded_costs(std::vector<std::int64_t> capacities,
                                     const RecordedAllocations& recorded);

}  // namespace hetseq
