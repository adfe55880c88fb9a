#include <limits>
#include <span>

#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// With fractions; micro-batches are always full.
double fractional_units_within(const StepCost& cost, double ms) {
    if (cost.micro_batch == 0)
        return 0;
    ms -= cost.update_ms;
    if (ms < 0)
        return 0;
    if (!cost.table.empty())
        return cost.table.units_within(ms / cost.scale);
    const double left_ms = ms - cost.scale * cost.start_ms;
    if (left_ms < 0)
        return 0;
    return cost.rate() < infinity ? cost.rate() * left_ms : infinity;
}

double fractional_units_within(std::span<const StepCost> costs, double ms) {
    double units = 0;
    for (const StepCost& cost : costs)
        units += fractional_units_within(cost, ms);
    return units;
}

}  // namespace

double bound_ms(std::span<const StepCost> costs, std::int64_t units) {
    const auto all = static_cast<double>(units);
    if (fractional_units_within(costs, 0) >= all)
        return 0;
    double below = 0;
    double enough = 1;
    while (fractional_units_within(costs, enough) < all) {
        below = enough;
        enough *= 2;
        if (enough == infinity)
            return infinity;
    }
    // Until no number lies between the two.
    for (double middle = enough / 2 + below / 2; below < middle && middle < enough;
         middle = enough / 2 + below / 2)
        (fractional_units_within(costs, middle) < all ? below : enough) = middle;
    return enough;
}

}  // namespace hetseq
