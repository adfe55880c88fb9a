#include "hetseq/balance/compare_times.hpp"

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
    return {makespan_ms(costs, allocate(costs, units)) + reduction_ms,
            makespan_ms(of_some, allocate(of_some, units))};
}

}  // namespace hetseq
