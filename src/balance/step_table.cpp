#include "hetseq/balance/step_table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
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
    slope_beyond_ms_ = std::max(slope_ms(points_[points_.size() - 2], points_.back()),
                                slope_ms(points_.front(), points_.back()));
}

double StepTable::time_ms(std::int64_t units) const {
    const auto next = std::lower_bound(
        points_.begin() + 1, points_.end(), units, [](const CostPoint& point, std::int64_t value) {
            return point.units < value;
        });
    const CostPoint& before = *std::prev(next);
    const auto more = static_cast<double>(units - before.units);
    if (next == points_.end())
        return before.ms + more * slope_beyond_ms_;
    // Rounding must not make it fall at the next point.
    return std::min(next->ms, before.ms + more * slope_ms(before, *next));
}

double StepTable::units_within(double ms) const {
    if (ms < points_.front().ms)
        return 0;
    const auto next = std::upper_bound(
        points_.begin() + 1, points_.end(), ms, [](double value, const CostPoint& point) {
            return value < point.ms;
        });
    const CostPoint& before = *std::prev(next);
    const double slope = next == points_.end() ? slope_beyond_ms_ : slope_ms(before, *next);
    return static_cast<double>(before.units) + (ms - before.ms) / slope;
}

}  // namespace hetseq
