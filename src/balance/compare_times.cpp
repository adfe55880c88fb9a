#include "hetseq/balance/compare_times.hpp"

#include <limits>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

ComparedTimes compare_times(std::span<const StepCost> costs,
                            const std::vector<bool>& works,
                            std::int64_t units,
                            double reduction_ms) {
    std::vector<StepCost> of_some;
    for (std::size_t r = 0; r < costs.size(); ++r)
        if (works[r])
            of_some.push_back(costs[r]);
    ComparedTimes times{.all_ms = makespan_ms(costs, allocate(costs, units)) + reduction_ms};
    try {
        times.some_ms = makespan_ms(of_some, allocate(of_some, units));
    } catch (const BadConfig&) {
        times.some_ms = std::numeric_limits<double>::infinity();
    }
    return times;
}

}  // namespace hetseq
