#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "hetseq/balance/paired_gain.hpp"
#include "hetseq/balance/step_cost.hpp"
#include "hetseq/balance/time_history.hpp"

namespace hetseq {

struct SpeedTrackerOptions {
    std::vector<int> kinds = {};  // by rank, the same number for like devices; empty: all unlike
    double least_gain = 0.05;     // of the predicted time, for a new allocation
    double small_gain = 0.02;     // for a correction
    double trust_factor = 3;      // by which a rank's units may change at once
    int retry_after = 100;        // updates without work, after which a scale begins to fade
};

/// Follows how fast the ranks are while they train, and says when to cut the batch in another way
/// (docs/allocation.md). Its results depend only on the numbers that it is given, and their order.
class SpeedTracker {
public:
    /// `costs` are as calibrated, by rank; their scales are those that an earlier tracker ended
    /// with.
    explicit SpeedTracker(std::vector<StepCost> costs, SpeedTrackerOptions options = {});

    /// One update: each rank's own compute time [ms], waiting and communication excluded, and the
    /// units it computed in it. A rank without units keeps its scale; times that are not times (not
    /// above 0, infinite) do not count. `update_ms`: what else each rank did itself in an update
    /// (optimizer, loading; waiting excluded) [ms]; empty: nothing.
    void observe(std::span<const double> compute_ms,
                 std::span<const std::int64_t> allocation,
                 std::span<const double> update_ms = {});

    /// To be called after each update with the full batch's allocation. Returns a better allocation
    /// of the same sum if it is worth the change.
    std::optional<std::vector<std::int64_t>> propose(std::span<const std::int64_t> current);

    /// Whether `observe` takes long, as it does where a rank loses its work.
    bool observes_slowly(std::span<const std::int64_t> allocation) const;
    /// Whether `propose` has nothing to weigh now: it then returns nothing, and at once. This is so
    /// after nearly all updates. Otherwise it takes 20 ms for 1,024 ranks.
    bool is_quiet(std::span<const std::int64_t> current) const;

    /// The calibrated costs with the scales measured since; only forward and backward.
    std::vector<StepCost> costs() const;

private:
    using Units = std::vector<std::int64_t>;
    using Scales = std::vector<double>;  // by rank

    struct Rank {
        double scale = 1;      // as believed before the updates of the history
        double update_ms = 0;  // the same
        int worked = 0;        // updates since it last had no work
        int idle = 0;          // updates since it last had work
        int retry_after = 0;   // updates without work before it is tried again
        bool retried = false;
    };

    void observe_idle(Rank& rank) const;
    void observe_work(Rank& rank) const;

    double scale_now(std::size_t rank, Scales& middles) const;
    std::vector<std::size_t> changed_suddenly(
        const std::vector<std::vector<const TimeBlock*>>& blocks) const;
    bool is_correction_due() const;
    std::optional<Units> sudden_change(std::span<const std::int64_t> current);
    std::optional<Units> correction(std::span<const std::int64_t> current);
    std::optional<Units> lasting_change(std::span<const std::int64_t> current);
    Units adopt(const Units& best,
                const std::vector<StepCost>& costs,
                std::span<const std::int64_t> current,
                bool is_settled);

    Scales believed() const;
    Scales measured(std::span<const TimeBlock* const> blocks) const;
    RatioBlock ratios(const TimeBlock& block, const Scales& typical) const;
    std::vector<int> believed_alike() const;
    /// What else each rank does itself in an update [ms], by rank.
    std::vector<double> measured_update_ms() const;
    std::vector<StepCost> scaled(const Scales& scales) const;
    /// The same, including what else an update takes.
    std::vector<StepCost> whole(const Scales& scales, const std::vector<double>& update_ms) const;

    std::vector<StepCost> calibrated_;
    SpeedTrackerOptions options_;
    std::vector<Rank> ranks_;
    TimeHistory history_;      // since the last cut
    bool may_correct_ = true;  // the present cut, for a small gain
    bool was_sudden_ = false;  // the last change
    double since_sudden_ms_ = std::numeric_limits<double>::infinity();
    int caution_ = 1;   // times the usual updates that show a sudden change
    double doubt_ = 1;  // times the usual standard errors that show a lasting one
};

}  // namespace hetseq
