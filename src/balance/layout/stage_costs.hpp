#pragma once

#include <cstddef>
#include <span>

#include "hetseq/balance/layout/layout_problem.hpp"
#include "hetseq/balance/pipeline/partition_chain.hpp"

#include "balance/pipeline/cut_costs.hpp"
#include "worker_chain.hpp"

namespace hetseq {

/// Of a worker's cut, in micro-batches of size `size`. `stages`: classes as in the layout. Tied
/// parameters are left out: they are summed with the gradients of all workers. Throws InternalError
/// for a cut that is none.
CutCosts stage_costs(const LayoutProblem& problem,
                     const StateTable& state,
                     std::size_t size,
                     const WorkerKind& kind,
                     std::span<const ChainStage> stages);

/// A cut's numbers, with as many micro-batches in flight as are fastest; its stages are left empty.
PipelineCut fastest_in_flight(const CutCosts& costs, std::size_t micro_batches);

}  // namespace hetseq
