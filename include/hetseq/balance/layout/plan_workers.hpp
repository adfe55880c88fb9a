#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetseq/balance/layout/layout_problem.hpp"
#include "hetseq/balance/pipeline/partition_chain.hpp"
#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// A virtual worker: ranks that train one replica as a pipeline. A rank alone is one of one stage.
struct WorkerPlan {
    std::vector<int> ranks;          // by stage; ranks that the cut has no use for are left out
    std::vector<ChainStage> stages;  // classes as in the problem
    std::int64_t micro_batch = 0;    // units
    std::size_t extra_in_flight = 0;
    std::vector<StageMemory> memory = {};  // by stage
    StepCost cost = {};                    // forward and backward, as a table of the worker's units
    std::int64_t units = 0;                // of a batch; may be 0
    double ms = 0;                         // forward and backward of these
    double bubble = 0;                     // part of the stages' time that is idle
};

/// Workers that are data parallel among themselves, and what an update takes.
struct LayoutPlan {
    std::string name = {};  // plain English; empty where the workers were given
    std::vector<WorkerPlan> workers;
    bool shards_state = false;  // each rank keeps a part of the optimizer's state
    double compute_ms = 0;      // forward and backward of the slowest worker
    double reduce_ms = 0;       // of the sums of gradients, what ends after that
    double optimizer_ms = 0;
    double update_ms = 0;      // the sum of the three
    std::string why_not = {};  // the memory that is missing; empty: it fits

    bool fits() const noexcept { return why_not.empty(); }
    std::size_t ranks() const noexcept;  // that work
};

/// What ranks keep of the optimizer's state: that of all they compute, or, where each has a whole
/// replica, a part each.
enum class WorkerState { whole, sharded };

/// Finds cuts, micro-batches and shares of a batch for workers of given ranks. No rank is in two;
/// `sharded` takes workers of one rank.
///
/// A cut is best for a share, and shares follow from times. So shares start in proportion to summed
/// speeds; each worker gets the cut and micro-batch (`partition_chain`, for each size) that are
/// fastest for its share, `allocate` cuts the batch by their times, and so on until nothing
/// changes. Then other cuts are tried while they make the update shorter: those met on the way,
/// single stages, cuts near the best one, and cuts in the same places for all workers, which share
/// the fewest sums of gradients; this for up to 64 workers, and near cuts for up to 8 stages. Of
/// the latter two, those are left out whose slowest stages alone would make the update longer.
/// Nothing shows that the result is the best: of all divisions of random small chains, it is in 96
/// of 100, and within 35 % of the best in all.
///
/// A worker's time is simulated for some numbers of micro-batches and linear between, up to 64 and
/// four times the stages; beyond that it grows as at the end. The search for a cut takes no more
/// devices of a class than keep it short: of 26 units and four classes some five each, and all
/// devices where there are few.
///
/// Where there are more than 64 ranks, workers whose links differ by less than a half are planned
/// with the links of the first one.
///
/// Sums of gradients: a segment is a run of units between the cuts of any workers; the ranks that
/// hold it sum it together. The gradients of a unit are there when the last micro-batch's backward
/// has come through it in all workers. Segments go from the last to the first; one awaits those
/// before it where they share a rank, and proceeds as its units' gradients come, each unit with the
/// part of the time that it has of the bytes. Parameters that units of two segments share are
/// summed last, by all holders; one of three units counts twice. Where the state is sharded, values
/// are gathered after the optimizer in half the time of an all-reduce, which nothing hides.
LayoutPlan plan_workers(const LayoutProblem& problem,
                        std::span<const std::vector<int>> workers,
                        WorkerState state = WorkerState::whole);

/// A worker whose cut is given.
struct GivenWorker {
    std::vector<int> ranks;          // by stage
    std::vector<std::size_t> units;  // by stage, > 0, those of the model together
    std::int64_t micro_batch = 0;    // one of the problem's sizes; 0: the fastest
};

/// Times and shares of given workers, whether they fit or not. Throws InternalError for cuts that
/// are none.
LayoutPlan plan_given(const LayoutProblem& problem,
                      std::span<const GivenWorker> workers,
                      WorkerState state = WorkerState::whole);

}  // namespace hetseq
