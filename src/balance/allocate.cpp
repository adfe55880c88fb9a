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

// Everything that surely fits before the optimum: the largest allocation found whose sum is still
// below `units`.
std::vector<std::int64_t> allocate_below(std::span<const StepCost> costs, std::int64_t units) {
    double too_short = 0;
    double enough = 1;
    while (total(units_within(costs, enough, units)) < units)
        enough *= 2;
    for (int i = 0; i < 60 && enough - too_short > 1e-12 * enough; ++i) {
        const double middle = (too_short + enough) / 2;
        (total(units_within(costs, middle, units)) < units ? too_short : enough) = middle;
    }
    return units_within(costs, too_short, units);
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

double bound_ms(std::span<const StepCost> costs, std::int64_t units) {
    std::vector<StepCost> working;
    std::copy_if(costs.begin(), costs.end(), std::back_inserter(working), [](const StepCost& cost) {
        return cost.micro_batch > 0;
    });
    std::sort(working.begin(), working.end(), [](const StepCost& a, const StepCost& b) {
        return a.start_ms < b.start_ms;
    });
    // With the first k ranks at work, sum (T - A_r) rate_r = units gives T; right once rank k + 1
    // starts no earlier.
    double rates = 0;
    double started = 0;
    double time = 0;
    for (std::size_t k = 0; k < working.size(); ++k) {
        rates += working[k].rate();
        started += working[k].rate() * working[k].start_ms;
        time = (static_cast<double>(units) + started) / rates;
        if (k + 1 == working.size() || time <= working[k + 1].start_ms)
            break;
    }
    return units == 0 ? 0 : time;
}

}  // namespace hetseq
