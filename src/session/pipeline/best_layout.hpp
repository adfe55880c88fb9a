#pragma once

#include <vector>

#include "hetseq/train/pipeline/unit_costs.hpp"
#include "hetseq/session/pipeline/pipeline_layout.hpp"

#include "chain_measurement.hpp"
#include "measured_ranks.hpp"

namespace hetseq {

class HostComm;
struct RunSettings;

/// By size of micro-batches, rank and unit.
using CostsBySize = std::vector<std::vector<std::vector<UnitCost>>>;
/// Collective. All ranks' costs.
CostsBySize gathered_costs(const HostComm& world, const std::vector<MeasuredSize>& sizes);

/// Collective. The layout that is predicted to be fastest, over all sizes of micro-batches. It is
/// rank 0's, since CPUs of different makes round differently. Throws BadConfig on all ranks, with
/// the numbers, where memory allows none.
PipelineLayout best_layout(const HostComm& world,
                           const RunSettings& settings,
                           const std::vector<MeasuredSize>& sizes,
                           const CostsBySize& costs,
                           const MeasuredRanks& ranks);

}  // namespace hetseq
