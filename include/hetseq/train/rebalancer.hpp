#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <optional>
#include <span>
#include <vector>

#include "hetseq/balance/speed_tracker.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/state/allocation_log.hpp"
#include "hetseq/state/training_state.hpp"

namespace hetseq {

class Recorder;
class SharePlan;

struct RebalancerOptions {
    bool follows = false;         // whether cuts follow the ranks' speeds; on the rank that decides
    std::int64_t batch_size = 0;  // units of a full batch
    std::int64_t updates = 0;     // of the whole run
    std::vector<int> like_ranks =
        {};  // by rank, the same number for like devices; empty: all unlike
    AllocationsByUpdate replay = {};  // cuts to repeat, each from its update on
};

/// Decides how the batches of a run are cut, update by update: by the ranks' costs at the start, as
/// in another run, or by the ranks' speeds. Batches are cut when their samples are requested, some
/// updates ahead. Each new cut is logged.
class Rebalancer {
public:
    /// `progress`: of the run so far.
    Rebalancer(SharePlan& shares,
               Recorder& recorder,
               AllocationLog log,
               const TrainingProgress& progress,
               RebalancerOptions options);
    Rebalancer(const Rebalancer&) = delete;
    Rebalancer& operator=(const Rebalancer&) = delete;

    /// Collective. Cuts the batch of the next update to be requested.
    std::vector<Slice> cut(const GlobalBatch& batch);

    /// The next update begins: the first one that was cut and has not begun. `agreed`: the cut that
    /// all ranks adopt for the batches that are not requested yet. `compute_ms`: of the update
    /// before, by rank. `update_ms`: what else the ranks did themselves in an update, without
    /// waiting. `micro_batches`: by rank, the micro-batch that memory held where a rank ran out of
    /// it; 0: it did not.
    void begin_update(const std::optional<std::vector<std::int64_t>>& agreed,
                      std::span<const double> compute_ms,
                      std::span<const double> update_ms,
                      std::span<const double> micro_batches);
    /// The allocation of the update that has begun; units by rank.
    const std::vector<std::int64_t>& allocation() const noexcept { return allocation_; }

    /// The first update since the start that was cut like the last full batch.
    std::int64_t cut_since() const noexcept { return cut_since_; }
    /// The allocation of that batch; empty if there was none.
    const std::vector<std::int64_t>& full_allocation() const noexcept { return full_; }

    /// A better cut that all ranks should be told; it is returned once. Empty if there is none. It
    /// is sought while the update is computed: what weighs all ranks' times takes long where they
    /// are many. Waits until the search ends.
    std::vector<std::int64_t> take_proposal();

    /// Sets the part of the progress that is known here.
    void save_to(TrainingProgress& progress);

private:
    void follow(std::span<const double> compute_ms, std::span<const double> update_ms);
    void finish_search();
    const std::vector<std::int64_t>* replayed() const;
    void change(const std::vector<std::int64_t>& allocation);

    SharePlan& shares_;
    Recorder& recorder_;
    AllocationLog log_;
    RebalancerOptions options_;
    std::optional<SpeedTracker> tracker_;
    std::int64_t first_ = 0;  // update since the run was last started
    std::int64_t next_ = 0;   // update to be requested
    std::int64_t reallocations_ = 0;
    struct Requested {
        std::vector<std::int64_t> units;  // by rank
        std::vector<std::int64_t> full;   // of a full batch; empty where this was none
    };
    std::deque<Requested> requested_;  // of updates that have not begun
    std::vector<std::int64_t> allocation_;
    std::int64_t cut_since_ = 0;
    std::vector<std::int64_t> full_;  // the last full batch's allocation
    std::vector<std::int64_t> proposal_;
    std::future<std::optional<std::vector<std::int64_t>>> sought_;  // with the tracker, which
                                                                    // nobody else touches then
    std::vector<double> micro_batches_;                             // as last told
};

}  // namespace hetseq
