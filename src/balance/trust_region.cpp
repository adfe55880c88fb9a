#include "hetseq/balance/trust_region.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

using Units = std::vector<std::int64_t>;

constexpr double far_off = 2;  // of the optimum's time: no small step helps then

std::int64_t batch_of(std::span<const std::int64_t> units) {
    return std::accumulate(units.begin(), units.end(), std::int64_t{0});
}

// The best allocation that gives each rank at least `low` units; `costs` hold the upper limits. A
// rank that would get less is given `low`, and the others share the rest, until none does.
Units allocate_from(std::span<const std::int64_t> low,
                    std::vector<StepCost> costs,
                    std::int64_t units) {
    Units fixed(costs.size(), 0);
    while (true) {
        Units allocation = allocate(costs, units - batch_of(fixed));
        bool enough = true;
        for (std::size_t r = 0; r < costs.size(); ++r) {
            if (fixed[r] > 0 || allocation[r] >= low[r])
                continue;
            fixed[r] = low[r];
            costs[r].micro_batch = 0;
            enough = false;
        }
        if (!enough)
            continue;
        for (std::size_t r = 0; r < costs.size(); ++r)
            allocation[r] += fixed[r];
        return allocation;
    }
}

}  // namespace

std::vector<std::int64_t> step_towards(std::span<const std::int64_t> best,
                                       std::span<const std::int64_t> current,
                                       std::span<const StepCost> costs,
                                       double factor) {
    HETSEQ_ASSERT(factor > 1 && batch_of(best) == batch_of(current));
    std::vector<StepCost> limited{costs.begin(), costs.end()};
    Units low(costs.size(), 0);
    std::int64_t capacity = 0;
    for (std::size_t r = 0; r < costs.size(); ++r) {
        StepCost& cost = limited[r];
        const auto now = static_cast<double>(current[r]);
        const std::int64_t high =
            current[r] == 0 ? cost.micro_batch : static_cast<std::int64_t>(std::ceil(now * factor));
        cost.max_units = best[r] == 0 ? 0 : std::min(cost.max_units, high);
        low[r] = std::min(cost.max_units, static_cast<std::int64_t>(now / factor));
        capacity += cost.micro_batch > 0 ? cost.max_units : 0;
    }
    if (capacity < batch_of(best))
        return {best.begin(), best.end()};
    Units step = allocate_from(low, limited, batch_of(best));
    if (makespan_ms(costs, step) > far_off * makespan_ms(costs, best))
        return {best.begin(), best.end()};
    return step;
}

}  // namespace hetseq
