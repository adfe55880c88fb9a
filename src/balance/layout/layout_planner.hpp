#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "hetseq/balance/layout/plan_workers.hpp"

#include "layout_draft.hpp"
#include "worker_cuts.hpp"
#include "worker_kind.hpp"

namespace hetseq {

/// Plans layouts of one problem, and remembers the cuts that it found.
class LayoutPlanner {
public:
    /// `problem` outlives the planner.
    explicit LayoutPlanner(const LayoutProblem& problem);

    /// As `plan_workers` and `plan_given`.
    LayoutPlan plan(std::span<const std::vector<int>> workers, WorkerState state);
    LayoutPlan given(std::span<const GivenWorker> workers, WorkerState state);

    /// True if a rank's memory holds the whole model; `sharded_over`: with such a part of the
    /// optimizer's state, 1: with all of it.
    bool holds_model(int rank, std::size_t sharded_over = 1);
    const LayoutProblem& problem() const noexcept { return problem_; }

private:
    using Choice = std::function<const WorkerCut*(std::size_t worker, std::int64_t units)>;

    WorkerCuts& cuts_of(std::size_t sharded_over);
    DividedRanks divided(std::vector<std::vector<int>> workers, WorkerState state);
    std::vector<std::int64_t> first_shares(const DividedRanks& ranks) const;
    LayoutDraft best_of_rounds(const DividedRanks& ranks, const Choice& choose) const;
    void try_known_cuts(const DividedRanks& ranks, WorkerCuts& cuts, LayoutDraft& best) const;
    bool try_cuts_for(const DividedRanks& ranks,
                      std::span<const WorkerCut* const> cuts,
                      std::span<const std::size_t> workers,
                      LayoutDraft& best) const;
    bool takes(const DividedRanks& ranks,
               std::vector<const WorkerCut*> cuts,
               LayoutDraft& best) const;
    bool may_be_better(double most_speed, const LayoutDraft& best) const;
    void add_near_cuts(const WorkerKind& kind,
                       std::span<const std::size_t> workers,
                       WorkerCuts& cuts,
                       const LayoutDraft& best) const;
    bool try_aligned(const DividedRanks& ranks, WorkerCuts& cuts, LayoutDraft& best) const;
    std::vector<ChainStage> stages_of(const GivenWorker& worker) const;

    const LayoutProblem& problem_;
    LayoutTimes times_;
    WorkerKinds kinds_;
    std::map<std::size_t, WorkerCuts> cuts_;  // by the ranks that the state is cut over
};

}  // namespace hetseq
