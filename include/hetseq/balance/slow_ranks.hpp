#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// A rank that stays far below others of its kind, and what a full batch takes because of it.
/// Communication is not counted.
struct SlowRank {
    std::size_t rank = 0;
    double speed = 1;      // as a part of its kind's
    double update_ms = 0;  // an update, as it is
    double well_ms = 0;    // if the rank were as fast as its kind
    double without_ms = std::numeric_limits<double>::infinity();  // with the other ranks alone;
                                                                  // infinite: they cannot do it
};

struct SlowRanksOptions {
    std::vector<int> kinds = {};  // by rank, the same number for like devices
    bool follows = false;         // whether shares follow the ranks' speeds
    double below = 0.75;          // of its kind's speed, is far below
    double period_ms = 20'000;    // of updates, over which a speed is measured
    int least_updates = 10;       // in such a period
    int periods = 3;              // in a row, in which a rank is slow, or no more
};

/// Finds ranks whose devices are sick: a GPU that is throttled, a host that swaps. Their own times
/// are compared with those of like devices. The speed of a kind is that of its middle rank (of an
/// even number, the faster of the middle two), because a disturbance only makes a rank slower. A
/// rank that is alone of its kind is not judged. Results depend only on the numbers given, and
/// their order.
class SlowRanks {
public:
    /// `costs`: by rank, as calibrated; their scales are ignored.
    SlowRanks(std::vector<StepCost> costs, SlowRanksOptions options);

    struct Change {
        std::vector<SlowRank> slow;          // that were not
        std::vector<std::size_t> recovered;  // that were slow
        std::vector<SlowRank> still_slow;    // as a further period has shown
        std::vector<std::size_t> well;       // that were well for so many periods in a row
    };
    /// One update: each rank's own compute time [ms], waiting excluded (0: not known), and the
    /// units that it computed in it. Returns what this update has shown: nearly always nothing.
    Change observe(std::span<const double> compute_ms, std::span<const std::int64_t> allocation);

    /// The ranks that are slow now.
    std::vector<SlowRank> slow() const;

private:
    struct Rank {
        double ms = 0, expected_ms = 0;  // of the period
        double ratio = 0;                // of these, of the last period that knows it; 0: none does
        bool is_slow = false;
        double speed = 1;      // as a part of its kind's, where it is slow
        int contrary = 0;      // periods in a row that say otherwise
        double speed_sum = 0;  // in these
        int well = 0;          // periods in a row that say so
    };

    Change close_period();
    std::vector<double> speeds_of_period() const;
    SlowRank describe(std::size_t rank) const;
    double update_ms(std::vector<StepCost> costs) const;

    std::vector<StepCost> costs_;
    SlowRanksOptions options_;
    std::vector<std::vector<std::size_t>> kinds_;
    std::vector<Rank> ranks_;
    std::vector<std::int64_t> full_;  // the largest batch's allocation
    double period_ms_ = 0;
    int updates_ = 0;  // of the period
};

}  // namespace hetseq
