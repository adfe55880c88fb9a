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

/// The mean of at least one value. `spread` counts like that of 3 more values, since a few values
/// that happen to agree prove little.
Estimate estimate(std::span<const double> values, double spread);

/// The part of the present cut's time that another one would have saved in each batch of updates,
/// with each rank as slow in them as it was. The costs' scales do not count. Both times are
/// compared in the same updates, so what slows all ranks cancels.
std::vector<double> paired_gains(std::span<const std::vector<RatioBlock>> batches,
                                 std::span<const StepCost> costs,
                                 std::span<const std::int64_t> current,
                                 std::span<const std::int64_t> other);

}  // namespace hetseq
