#include "hetseq/balance/step_cost.hpp"

#include <algorithm>
#include <cmath>

namespace hetseq {

namespace {

std::int64_t micro_batches(std::int64_t units, std::int64_t micro_batch) {
    return 1 + (units - 1) / micro_batch;
}

// About the most units whose time is at most `ms`, as a first guess.
double estimated_units(const StepCost& cost, double ms) {
    ms -= cost.update_ms;
    if (ms <= 0)
        return 0;
    if (!cost.table.empty())
        return cost.table.units_within(ms / cost.scale);
    const auto micro_batch = static_cast<double>(cost.micro_batch);
    const double full_ms = cost.micro_batch_ms + micro_batch * cost.unit_ms;
    const double left_ms = ms / cost.scale - cost.start_ms;
    const double full = std::floor(left_ms / full_ms);
    const double last_ms = left_ms - full * full_ms - cost.micro_batch_ms;
    return full * micro_batch + std::clamp(last_ms / cost.unit_ms, 0.0, micro_batch);
}

// `value` as a whole number in [0, most]; not-a-number gives 0.
std::int64_t whole(double value, std::int64_t most) {
    if (value >= static_cast<double>(most))
        return most;
    return value > 0 ? static_cast<std::int64_t>(value) : 0;
}

}  // namespace

double StepCost::time_ms(std::int64_t units) const {
    if (units == 0)
        return 0;
    if (!table.empty())
        return update_ms + scale * table.time_ms(units);
    return update_ms +
           scale *
               (start_ms + static_cast<double>(micro_batches(units, micro_batch)) * micro_batch_ms +
                static_cast<double>(units) * unit_ms);
}

double StepCost::fixed_ms() const {
    return update_ms + (table.empty() ? scale * start_ms : 0);
}

std::int64_t StepCost::units_within(double ms, std::int64_t limit) const {
    const std::int64_t most = std::min(limit, max_units);
    if (micro_batch == 0 || most <= 0 || ms < 0)
        return 0;
    // time_ms never falls. From a guess, doubling steps find one value that fits and one that does
    // not; bisection then finds the last one that fits.
    const auto within = [&](std::int64_t units) { return time_ms(units) <= ms; };
    const auto doubled = [&](std::int64_t step) { return step + std::min(step, most - step); };
    std::int64_t fits = whole(estimated_units(*this, ms), most);
    std::int64_t beyond = fits;
    for (std::int64_t step = 1; fits > 0 && !within(fits); step = doubled(step)) {
        beyond = fits;
        fits -= std::min(step, fits);
    }
    for (std::int64_t step = 1; beyond <= fits; step = doubled(step)) {
        if (fits == most)
            return most;
        const std::int64_t next = fits + std::min(step, most - fits);
        (within(next) ? fits : beyond) = next;
    }
    while (beyond - fits > 1) {
        const std::int64_t middle = fits + (beyond - fits) / 2;
        (within(middle) ? fits : beyond) = middle;
    }
    return fits;
}

double StepCost::rate() const {
    if (micro_batch == 0)
        return 0;
    if (!table.empty())
        return 1 / (scale * table.unit_ms());
    return 1 / (scale * (unit_ms + micro_batch_ms / static_cast<double>(micro_batch)));
}

bool recomputing_costs_less(const StepCost& cost, std::int64_t units, std::int64_t micro_batches) {
    if (!cost.table.empty())
        return false;
    const double more = static_cast<double>(micro_batches) * cost.micro_batch_ms;
    return (more + static_cast<double>(units) * cost.unit_ms) * cost.forward_part < more;
}

StepCost limited_to(StepCost cost, std::int64_t micro_batch) {
    if (micro_batch >= cost.micro_batch)
        return cost;
    if (!cost.table.empty()) {
        std::vector<CostPoint> points;
        for (const CostPoint& point : cost.table.points())
            if (point.units < micro_batch)
                points.push_back(point);
        points.push_back({micro_batch, cost.table.time_ms(micro_batch)});
        cost.table = StepTable(std::move(points));
    }
    cost.micro_batch = micro_batch;
    return cost;
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
