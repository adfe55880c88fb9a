#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/balance/step_cost.hpp"

namespace hetseq {

/// The time of an update on all ranks, and on some of them alone [ms].
struct ComparedTimes {
    double all_ms = 0;
    double some_ms = 0;  // infinite where they cannot do it alone
};

/// `works`: by rank, those that an update could do with. `reduction_ms`: what summing the gradients
/// over all ranks takes. It is counted in full, and among `works` as nothing, so that all ranks are
/// found faster only where they surely are. Throws BadConfig where all ranks cannot do the work.
ComparedTimes compare_times(std::span<const StepCost> costs,
                            const std::vector<bool>& works,
                            std::int64_t units,
                            double reduction_ms);

}  // namespace hetseq
