#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "hetseq/balance/pipeline/partition_chain.hpp"
#include "hetseq/balance/step_cost.hpp"

#include "worker_chain.hpp"

namespace hetseq {

/// A cut of a worker, and its times by units.
struct WorkerCut {
    std::size_t size = 0;            // of LayoutProblem::sizes
    std::vector<ChainStage> stages;  // classes as in the layout
    double overshoot_mb = 0;         // of the tightest stage; <= 0: it fits
    StepCost cost;
};

/// Less overshoot, then faster with `units`, then a larger micro-batch, then fewer stages.
bool is_better(const WorkerCut& a, const WorkerCut& b, std::int64_t units);

/// Finds cuts for workers, and remembers them by the workers' kinds.
class WorkerCuts {
public:
    /// `problem` outlives the cuts.
    WorkerCuts(const LayoutProblem& problem, std::size_t sharded_over);

    /// The fastest known cut for `units` >= 0 after a search for that many, which fits or else
    /// lacks least. Valid as long as this.
    const WorkerCut& fastest(const WorkerKind& kind, std::int64_t units);
    /// All that are known.
    std::vector<const WorkerCut*> known(const WorkerKind& kind) const;
    /// A cut of one's own, whether it fits or not.
    const WorkerCut& given(const WorkerKind& kind,
                           std::size_t size,
                           std::span<const ChainStage> stages);
    /// Gets to know those near `cut` that `is_worth_it`, in micro-batches of all sizes.
    void add_near(const WorkerKind& kind,
                  const WorkerCut& cut,
                  const std::function<bool(std::size_t size, std::span<const ChainStage> stages)>&
                      is_worth_it);
    /// Its numbers where it computes `units`; its stages are left empty.
    PipelineCut evaluated(const WorkerKind& kind, const WorkerCut& cut, std::int64_t units) const;

private:
    using Key = std::pair<std::size_t, std::vector<ChainStage>>;  // a size and a cut
    using Known = std::map<Key, const WorkerCut*>;

    const std::vector<ChainStage>& searched(const WorkerKind& kind,
                                            std::size_t size,
                                            std::int64_t units);
    void add_single_stages(const WorkerKind& kind, std::size_t size);

    const LayoutProblem& problem_;
    StateTable state_;
    // By kind of searchable devices, size, and number of micro-batches.
    std::map<std::tuple<WorkerKind, std::size_t, std::size_t>, std::vector<ChainStage>> searched_;
    std::map<WorkerKind, std::map<Key, WorkerCut>> cuts_;  // by links alone
    std::map<WorkerKind, Known> known_;
};

}  // namespace hetseq
