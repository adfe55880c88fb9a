#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"

namespace hetseq {

std::vector<std::size_t> ends_of(std::span<const ChainStage> stages);

/// Stages that end at `ends`, no more than there are `ranks`: the one that takes longest is on the
/// fastest rank, and so on.
std::vector<ChainStage> aligned_stages(const LayoutProblem& problem,
                                       std::size_t size,
                                       std::span<const std::size_t> ends,
                                       std::vector<int> ranks);

}  // namespace hetseq
