#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// By how much each rank took longer than its cost says, in some updates.
struct RatioBlock {
    std::vector<double> ratios;  // by rank
    int updates = 0;
};

/// A mean of independent values and its standard error.
struct Estimate {
    double mean = 0;
    double error = 0;
    bool exceeds(double least, double errors) const {
        return mean >= least && mean >= errors * error;
    }
};

/// Of at least one value. `spread` stands for 3 values more: few that happen to agree prove little.
Estimate estimate(std::span<const double> values, double spread);

/// The part of the present cut's time that another one would have saved in each batch of updates,
/// each rank being as slow in them as it was; the costs' scales do not count. Since one time is
/// compared with the other in the same updates, what slows all ranks counts in neither.
std::vector<double> paired_gains(std::span<const std::vector<RatioBlock>> batches,
                                 std::span<const StepCost> costs,
                                 std::span<const std::int64_t> current,
                                 std::span<const std::int64_t> other);

}  // namespace hetseq
