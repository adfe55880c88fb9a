#pragma once

#include <vector>

#include "hetseq/balance/layout/measured_chain.hpp"
#include "hetseq/model/chain.hpp"

#include "chain_measurement.hpp"
#include "layout_problem.hpp"
#include "measured_ranks.hpp"

namespace hetseq {

struct RunSettings;

/// By unit of the chain: of the gradients of parameters that other units read too, the part that is
/// not zero after a batch.
std::vector<double> filled_by_batch(const std::vector<MeasuredSize>& sizes,
                                    const CostsBySize& costs);

/// What was measured, by kinds of devices: for summary.json, from which `hetseq plan` takes it.
MeasuredChain measured_units(const RunSettings& settings,
                             const std::vector<ChainUnit>& chain,
                             const std::vector<MeasuredSize>& sizes,
                             const CostsBySize& costs,
                             const MeasuredRanks& ranks);

}  // namespace hetseq
