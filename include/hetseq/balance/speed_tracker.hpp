#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hetseq/balance/robust_scale.hpp"
#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

struct SpeedTrackerOptions {
    int first = 5;             // updates before the first decision
    int period = 10;           // a decision after each multiple of so many updates
    double least_gain = 0.05;  // of the predicted time, for a new allocation
    double small_gain = 0.02;  // instead, while young or where the last change was cut short
    int young = 20;            // updates that may correct the calibration
    double trust_factor = 3;   // by which a rank's units may change at once
    int retry_after = 100;     // updates without work, after which a scale begins to fade
    std::vector<double> communication_ms = {};  // by size of the group, as for allocate; or empty
};

/// Follows how fast the ranks are while they train, and says when to cut the batch otherwise
/// (docs/allocation.md). A function of the numbers it is given, in their order.
class SpeedTracker {
public:
    /// `costs` as calibrated, by rank; a scale is what an earlier tracker followed to its end.
    explicit SpeedTracker(std::vector<StepCost> costs, SpeedTrackerOptions options = {});

    /// One update: each rank's own compute time [ms], waiting and communication excluded, and the
    /// units it computed in it. A rank without units keeps its scale; times that are no times (not
    /// above 0, infinite) do not count.
    void observe(std::span<const double> compute_ms, std::span<const std::int64_t> allocation);

    /// After the first few and every period-th update, given the full batch's allocation: a better
    /// one of the same sum that is worth the change; nothing otherwise.
    std::optional<std::vector<std::int64_t>> propose(std::span<const std::int64_t> current);

    /// The calibrated costs, slower or faster as measured since.
    std::vector<StepCost> costs() const;

private:
    struct Rank {
        RobustScale scale = RobustScale{};
        int worked = 0;       // updates since it last had no work
        int idle = 0;         // updates since it last had work
        int retry_after = 0;  // updates without work before it is tried again
        bool retried = false;
    };

    void observe_idle(Rank& rank) const;
    void observe_work(Rank& rank, double ratio) const;
    std::vector<StepCost> cautious_costs() const;
    double time_ms(std::span<const StepCost> costs, std::span<const std::int64_t> allocation) const;

    std::vector<StepCost> calibrated_;
    SpeedTrackerOptions options_;
    std::vector<Rank> ranks_;
    std::int64_t updates_ = 0;  // observed
    bool unfinished_ = false;   // the trust region cut the last change short
};

}  // namespace hetseq
