#include "hetseq/balance/step_table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

// Pool adjacent violators (Barlow et al., Statistical Inference under Order Restrictions, 1972):
// the nondecreasing sequence nearest in least squares.
void make_nondecreasing(std::vector<CostPoint>& points) {
    struct Pool {
        double mean;
        std::size_t count;
    };
    std::vector<Pool> pools;
    for (const CostPoint& point : points) {
        pools.push_back({point.ms, 1});
        while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
            const Pool last = pools.back();
            pools.pop_back();
            Pool& pool = pools.back();
            const double sum = pool.mean * static_cast<double>(pool.count) +
                               last.mean * static_cast<double>(last.count);
            pool.count += last.count;
            pool.mean = sum / static_cast<double>(pool.count);
        }
    }
    auto point = points.begin();
    for (const Pool& pool : pools)
        for (std::size_t i = 0; i < pool.count; ++i)
            (point++)->ms = pool.mean;
}

double slope_ms(const CostPoint& from, const CostPoint& to) {
    return (to.ms - from.ms) / static_cast<double>(to.units - from.units);
}

}  // namespace

StepTable::StepTable(std::vector<CostPoint> points) : points_{std::move(points)} {
    const auto fewer = [](const CostPoint& a, const CostPoint& b) { return a.units < b.units; };
    std::sort(points_.begin(), points_.end(), fewer);
    HETSEQ_ASSERT(!points_.empty() && points_.back().units > 0);
    if (points_.front().units > 0)
        points_.insert(points_.begin(), CostPoint{});
    for (std::size_t i = 0; i < points_.size(); ++i) {
        HETSEQ_ASSERT(std::isfinite(points_[i].ms) && points_[i].ms >= 0);
        HETSEQ_ASSERT(i == 0 ? points_[i].units == 0 : points_[i - 1].units < points_[i].units);
    }
    make_nondecreasing(points_);
}

// Up to the last point.
double StepTable::within_ms(std::int64_t units) const {
    const auto next = std::lower_bound(
        points_.begin() + 1, points_.end(), units, [](const CostPoint& point, std::int64_t value) {
            return point.units < value;
        });
    const CostPoint& before = *std::prev(next);
    // Rounding must not make it fall at the next point.
    return std::min(
        next->ms, before.ms + static_cast<double>(units - before.units) * slope_ms(before, *next));
}

double StepTable::time_ms(std::int64_t units) const {
    const std::int64_t full = (units - 1) / points_.back().units;
    const auto until = [&](std::int64_t periods) {
        return static_cast<double>(periods) * points_.back().ms;
    };
    const double rest = within_ms(units - full * points_.back().units);
    return std::min(until(full + 1), until(full) + rest);  // no fall by rounding here either
}

double StepTable::units_within(double ms) const {
    const CostPoint& last = points_.back();
    if (last.ms == 0)
        return std::numeric_limits<double>::infinity();
    const double full = std::floor(ms / last.ms);
    const double rest = std::clamp(ms - full * last.ms, 0.0, last.ms);
    const double done = full * static_cast<double>(last.units);
    if (rest < points_.front().ms)
        return done;
    const auto next = std::upper_bound(
        points_.begin() + 1, points_.end(), rest, [](double value, const CostPoint& point) {
            return value < point.ms;
        });
    const CostPoint& before = *std::prev(next);
    if (next == points_.end())
        return done + static_cast<double>(before.units);
    return done + static_cast<double>(before.units) + (rest - before.ms) / slope_ms(before, *next);
}

double StepTable::unit_ms() const {
    return points_.back().ms / static_cast<double>(points_.back().units);
}

}  // namespace hetseq
