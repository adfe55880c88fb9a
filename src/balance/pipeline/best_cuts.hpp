#pragma once

#include <cstddef>
#include <vector>

#include "chain_costs.hpp"

namespace hetseq {

struct ScoredCut {
    double score_ms = 0;
    std::vector<ChainStage> stages;
};

/// Less score, then fewer devices, then in the order of stages.
bool operator<(const ScoredCut& a, const ScoredCut& b);

/// The `most` best cuts that memory allows, of all that there are, in order; fewer where no more
/// fit.
std::vector<ScoredCut> best_cuts(const ChainCosts& costs, std::size_t most);

}  // namespace hetseq
