#pragma once

#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"

#include "chain_measurement.hpp"
#include "measured_ranks.hpp"

namespace hetseq {

class HostComm;
struct RunSettings;

/// By size of micro-batches, rank and unit.
using CostsBySize = std::vector<std::vector<std::vector<UnitCost>>>;
/// Collective. All ranks' costs.
CostsBySize gathered_costs(const HostComm& world, const std::vector<MeasuredSize>& sizes);

/// Who could train what, by what was measured. All arguments outlive it.
LayoutProblem layout_problem(const RunSettings& settings,
                             const std::vector<MeasuredSize>& sizes,
                             const CostsBySize& costs,
                             const MeasuredRanks& ranks);

}  // namespace hetseq
