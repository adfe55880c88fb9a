#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"
#include "hetseq/balance/pipeline/partition_chain.hpp"

#include "worker_chain.hpp"

namespace hetseq {

/// A cut as a chain whose units are its stages: its times and memory are the same, and known
/// sooner.
class StageChain {
public:
    /// `stages`: classes as in the layout. Throws InternalError for a cut that is none. `state`
    /// outlives the chain.
    StageChain(const LayoutProblem& problem,
               const StateTable& state,
               std::size_t size,
               const WorkerKind& kind,
               std::span<const ChainStage> stages);

    /// Its numbers for so many micro-batches, as many of them in flight as are fastest.
    PipelineCut evaluated(std::size_t micro_batches);

private:
    void add_units(const ChainProblem& all, std::span<const ChainStage> stages);
    void add_devices(const ChainProblem& all,
                     const WorkerKind& kind,
                     std::span<const ChainStage> stages);

    ChainProblem problem_;
    std::vector<ChainStage> cut_;
};

}  // namespace hetseq
