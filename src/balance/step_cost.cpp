#include "hetseq/balance/step_cost.hpp"

#include <algorithm>

namespace hetseq {

namespace {

std::int64_t micro_batches(std::int64_t units, std::int64_t micro_batch) {
    return (units + micro_batch - 1) / micro_batch;
}

}  // namespace

double StepCost::time_ms(std::int64_t units) const {
    if (units == 0)
        return 0;
    return start_ms + static_cast<double>(micro_batches(units, micro_batch)) * micro_batch_ms +
           static_cast<double>(units) * unit_ms;
}

std::int64_t StepCost::units_within(double ms, std::int64_t limit) const {
    if (micro_batch == 0)
        return 0;
    // time_ms never falls, so bisection finds its last value within `ms`, whatever its steps.
    std::int64_t fits = 0;
    std::int64_t beyond = std::min(limit, max_units) + 1;
    while (beyond - fits > 1) {
        const std::int64_t middle = fits + (beyond - fits) / 2;
        (time_ms(middle) <= ms ? fits : beyond) = middle;
    }
    return fits;
}

double StepCost::rate() const {
    if (micro_batch == 0)
        return 0;
    return 1 / (unit_ms + micro_batch_ms / static_cast<double>(micro_batch));
}

std::vector<StepCost> declared_costs(std::span<const std::int64_t> capacities) {
    std::vector<StepCost> costs(capacities.size());
    for (std::size_t r = 0; r < costs.size(); ++r) {
        costs[r].micro_batch = capacities[r];
        if (capacities[r] > 0)
            costs[r].unit_ms = 1 / static_cast<double>(capacities[r]);
    }
    return costs;
}

std::vector<StepCost> equal_costs(std::span<const std::int64_t> capacities) {
    std::vector<StepCost> costs(capacities.size());
    for (std::size_t r = 0; r < costs.size(); ++r)
        costs[r].micro_batch = capacities[r];
    return costs;
}

}  // namespace hetseq
