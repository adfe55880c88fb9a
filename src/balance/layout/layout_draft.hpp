#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"

#include "gradient_sums.hpp"
#include "worker_cuts.hpp"

namespace hetseq {

/// A worker before it has a cut.
struct WorkerRanks {
    std::vector<int> ranks;
    WorkerKind kind;
};

struct DividedRanks {
    std::vector<WorkerRanks> workers;
    std::size_t sharded_over = 1;  // ranks that each keep a part of the optimizer's state
};

/// What is chosen for each worker, and the times that follow.
struct LayoutDraft {
    std::vector<const WorkerCut*> cuts;
    std::vector<std::int64_t> shares;
    double overshoot_mb = 0;  // of the worker that lacks most; 0: all fit
    double compute_ms = 0, reduce_ms = 0, optimizer_ms = 0;

    double update_ms() const noexcept { return compute_ms + reduce_ms + optimizer_ms; }
    bool is_better(const LayoutDraft& other) const;
};

/// Times of layouts whose cuts are chosen.
class LayoutTimes {
public:
    /// `problem` outlives the times.
    explicit LayoutTimes(const LayoutProblem& problem) : problem_{problem}, sums_{problem} {}

    /// Cuts the batch by the cuts' times, or as the problem gives it.
    LayoutDraft draft(const DividedRanks& ranks, std::vector<const WorkerCut*> cuts) const;
    /// `cuts` made those of the draft.
    LayoutPlan finished(const DividedRanks& ranks,
                        const LayoutDraft& draft,
                        const WorkerCuts& cuts) const;

private:
    std::vector<int> ranks_by_stage(const WorkerRanks& worker, const WorkerCut& cut) const;
    void add_reduction(const DividedRanks& ranks, LayoutDraft& draft) const;
    std::vector<std::int64_t> shares(const DividedRanks& ranks,
                                     const std::vector<const WorkerCut*>& cuts,
                                     const std::vector<StepCost>& costs) const;
    double optimizer_ms(const WorkerCut& cut) const;
    WorkerPlan worker_plan(const WorkerRanks& worker,
                           const WorkerCut& cut,
                           std::int64_t units,
                           const PipelineCut& evaluated) const;

    const LayoutProblem& problem_;
    GradientSums sums_;
};

}  // namespace hetseq
