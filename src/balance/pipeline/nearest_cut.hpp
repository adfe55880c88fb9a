#pragma once

#include <vector>

#include "chain_costs.hpp"

namespace hetseq {

/// The cut that comes nearest to fitting: the stage that overshoots its memory most does so by as
/// little as possible. Ties go to fewer devices, then in the order of stages.
std::vector<ChainStage> nearest_cut(const ChainCosts& costs);

}  // namespace hetseq
