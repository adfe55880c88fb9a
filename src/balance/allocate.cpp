#include "hetseq/balance/allocate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

std::vector<std::int64_t> units_within(std::span<const StepCost> costs,
                                       double ms,
                                       std::int64_t units) {
    std::vector<std::int64_t> fits(costs.size());
    for (std::size_t r = 0; r < costs.size(); ++r)
        fits[r] = costs[r].units_within(ms, units);
    return fits;
}

std::int64_t total(std::span<const std::int64_t> values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

// The largest allocation found whose sum is still below `units`. It is so near that at most one
// unit per rank is missing, or that times differ only by rounding.
std::vector<std::int64_t> allocate_below(std::span<const StepCost> costs, std::int64_t units) {
    std::vector<std::int64_t> below(costs.size());
    double too_short = 0;
    double rates = 0;
    for (const StepCost& cost : costs)
        rates += cost.rate();
    double enough = std::max(1e-9, static_cast<double>(units) / rates);
    std::vector<std::int64_t> fits = units_within(costs, enough, units);
    while (total(fits) < units) {
        below = std::move(fits);
        too_short = enough;
        enough *= 2;
        fits = units_within(costs, enough, units);
    }
    std::int64_t above = total(fits);
    // Tries in turn the middle and the place where a straight line would miss half a unit per rank.
    // The sum is nearly a straight line; where it is not, halving still ends.
    for (bool halve = false; enough - too_short > 1e-13 * enough; halve = !halve) {
        const std::int64_t missing = units - total(below);
        if (missing <= std::ssize(costs))
            break;
        const double wanted =
            static_cast<double>(missing) - 0.5 * static_cast<double>(costs.size());
        const double part = halve ? 0.5 : wanted / static_cast<double>(above - units + missing);
        const double middle = too_short + part * (enough - too_short);
        fits = units_within(costs, middle, units);
        if (total(fits) >= units) {
            enough = middle;
            above = total(fits);
        } else {
            too_short = middle;
            below = std::move(fits);
        }
    }
    return below;
}

// Gives each further unit to the rank that would finish first with it.
void give_rest(std::span<const StepCost> costs,
               std::int64_t units,
               std::vector<std::int64_t>& allocation) {
    using Offer = std::pair<double, std::size_t>;  // time with one unit more, rank
    std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
    const auto offer = [&](std::size_t r) {
        if (costs[r].micro_batch > 0 && allocation[r] < costs[r].max_units)
            offers.emplace(costs[r].time_ms(allocation[r] + 1), r);
    };
    for (std::size_t r = 0; r < costs.size(); ++r)
        offer(r);
    for (std::int64_t rest = units - total(allocation); rest > 0; --rest) {
        const std::size_t r = offers.top().second;
        offers.pop();
        ++allocation[r];
        offer(r);
    }
}

void check_capacity(std::span<const StepCost> costs, std::int64_t units) {
    std::int64_t capacity = 0;
    for (const StepCost& cost : costs) {
        if (cost.micro_batch > 0)
            capacity +=
                std::min(cost.max_units, units);  // no overflow: each at most the whole batch
        if (capacity >= units)
            return;
    }
    throw BadConfig("the ranks cannot take a batch of " + std::to_string(units) + " units",
                    "together they take " + std::to_string(capacity),
                    "raise --max-sentences on some rank, or lower --batch-size");
}

}  // namespace

std::vector<std::int64_t> allocate(std::span<const StepCost> costs, std::int64_t units) {
    if (units == 0)
        return std::vector<std::int64_t>(costs.size(), 0);
    check_capacity(costs, units);
    std::vector<std::int64_t> allocation = allocate_below(costs, units);
    give_rest(costs, units, allocation);
    return allocation;
}

double makespan_ms(std::span<const StepCost> costs, std::span<const std::int64_t> allocation) {
    double latest = 0;
    for (std::size_t r = 0; r < costs.size(); ++r)
        latest = std::max(latest, costs[r].time_ms(allocation[r]));
    return latest;
}

}  // namespace hetseq
