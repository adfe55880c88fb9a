#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hetseq/balance/step_cost.hpp"

#include "worker_chain.hpp"

namespace hetseq {

/// Of `units` in micro-batches of `micro_batch`, above 32 rounded down so that like numbers are
/// the same: to three significant bits, and no more than 1024.
std::size_t rounded_micro_batches(std::int64_t units, std::int64_t micro_batch);

/// The time of a worker's forward and backward by its units, with micro-batches of size `size`.
/// `stages`: classes as in the layout. What is less than a micro-batch takes as long as smaller
/// sizes say.
StepCost cut_times(const LayoutProblem& problem,
                   const StateTable& state,
                   std::size_t size,
                   const WorkerKind& kind,
                   std::span<const ChainStage> stages);

}  // namespace hetseq
