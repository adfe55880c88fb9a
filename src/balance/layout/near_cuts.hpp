#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hetseq/balance/pipeline/chain_problem.hpp"

namespace hetseq {

/// The cuts that differ from this one by a unit that moves to the stage beside it, by two stages
/// beside each other that change devices, by a stage that the one beside it takes over, by a stage
/// on an idle device in its place, or by a half of a stage that goes to an idle device. `devices`:
/// those of the worker, by class.
std::vector<std::vector<ChainStage>> near_cuts(std::span<const ChainStage> stages,
                                               std::span<const std::size_t> devices);

}  // namespace hetseq
