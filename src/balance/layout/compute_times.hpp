#pragma once

#include <cstddef>
#include <span>

#include "hetseq/balance/layout/layout_problem.hpp"

namespace hetseq {

/// Forward and backward of a micro-batch of size `size` on a stage [ms].
double stage_ms(const LayoutProblem& problem, std::size_t size, const ChainStage& stage);

/// Forward and backward of the largest micro-batch on a rank alone, > 0 [ms].
double chain_ms(const LayoutProblem& problem, int rank);

/// The most that a worker can do, whatever links take: what its slowest stage does, in
/// micro-batches of size `size` or a smaller one, as its last ones may be [units / ms].
double most_speed(const LayoutProblem& problem,
                  std::size_t size,
                  std::span<const ChainStage> stages);

}  // namespace hetseq
