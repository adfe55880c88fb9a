#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// At `ms` the ranks' units begin to grow faster, or jump.
struct Change {
    double ms = 0;
    double rate = 0;   // more units a millisecond from here on
    double units = 0;  // at once
};

// From `ms` on the rank computes `rate` units a millisecond.
void add_start(double ms, double rate, std::vector<Change>& changes) {
    changes.push_back(rate < infinity ? Change{ms, rate, 0} : Change{ms, 0, infinity});
}

void add_table(const StepCost& cost, std::vector<Change>& changes) {
    const std::span<const CostPoint> points = cost.table.points();
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        const double begin = cost.scale * points[i].ms;
        const double end = cost.scale * points[i + 1].ms;
        const auto units = static_cast<double>(points[i + 1].units - points[i].units);
        const double rate = units / (end - begin);
        if (rate < infinity) {
            changes.push_back({begin, rate, 0});
            changes.push_back({end, -rate, 0});
        } else {
            changes.push_back({begin, 0, units});
        }
    }
    add_start(cost.scale * points.back().ms, cost.rate(), changes);
}

}  // namespace

double bound_ms(std::span<const StepCost> costs, std::int64_t units) {
    if (units == 0)
        return 0;
    std::vector<Change> changes;
    for (const StepCost& cost : costs) {
        if (cost.micro_batch == 0)
            continue;
        if (cost.table.empty())
            add_start(cost.scale * cost.start_ms, cost.rate(), changes);
        else
            add_table(cost, changes);
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
        return a.ms < b.ms;
    });
    // The units that all ranks together have done grow linearly from one change to the next.
    double rate = 0;
    auto missing = static_cast<double>(units);
    double time = 0;
    for (const Change& change : changes) {
        const double done = rate * (change.ms - time);
        if (done >= missing)
            break;
        missing -= done + change.units;
        time = change.ms;
        if (missing <= 0)
            return time;
        rate += change.rate;
    }
    return changes.empty() ? infinity : time + missing / rate;
}

}  // namespace hetseq
