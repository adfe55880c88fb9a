#include "hetseq/balance/speed_tracker.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"
#include "hetseq/balance/trust_region.hpp"

namespace hetseq {

namespace {

const double fade = std::exp2(-1.0 / 50);  // of what a scale differs from 1, an update
constexpr int longest_retry = 1 << 20;     // updates

}  // namespace

SpeedTracker::SpeedTracker(std::vector<StepCost> costs, SpeedTrackerOptions options)
    : calibrated_{std::move(costs)}, options_{std::move(options)}, ranks_(calibrated_.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        ranks_[r].retry_after = options_.retry_after;
        ranks_[r].scale = RobustScale{std::exchange(calibrated_[r].scale, 1)};
    }
}

void SpeedTracker::observe(std::span<const double> compute_ms,
                           std::span<const std::int64_t> allocation) {
    HETSEQ_ASSERT(compute_ms.size() == ranks_.size() && allocation.size() == ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (allocation[r] == 0)
            observe_idle(ranks_[r]);
        else
            observe_work(ranks_[r], compute_ms[r] / calibrated_[r].time_ms(allocation[r]));
    }
    ++updates_;
}

// A rank that soon lost its work again after a retry waits twice as long for the next one.
void SpeedTracker::observe_idle(Rank& rank) const {
    if (rank.worked > 0) {
        const bool in_vain = rank.retried && rank.worked < options_.retry_after;
        rank.retry_after =
            in_vain ? std::min(2 * rank.retry_after, longest_retry) : options_.retry_after;
        rank.worked = 0;
    }
    if (++rank.idle > rank.retry_after)
        rank.scale = RobustScale{1 + (rank.scale.value() - 1) * fade};
}

void SpeedTracker::observe_work(Rank& rank, double ratio) const {
    if (rank.worked++ == 0)
        rank.retried = rank.idle > rank.retry_after;
    rank.idle = 0;
    if (std::isfinite(ratio) && ratio > 0)
        rank.scale.observe(ratio);
}

std::optional<std::vector<std::int64_t>> SpeedTracker::propose(
    std::span<const std::int64_t> current) {
    HETSEQ_ASSERT(current.size() == ranks_.size());
    const std::int64_t units = std::accumulate(current.begin(), current.end(), std::int64_t{0});
    const bool is_due =
        updates_ == options_.first || (updates_ > 0 && updates_ % options_.period == 0);
    if (!is_due || units == 0)
        return std::nullopt;
    const std::vector<StepCost> now = costs();
    const std::vector<std::int64_t> best = options_.communication_ms.empty()
                                               ? allocate(now, units)
                                               : allocate(now, units, options_.communication_ms);
    std::vector<std::int64_t> next = step_towards(best, current, now, options_.trust_factor);
    // A new change needs evidence: the current allocation is judged by times that lie two standard
    // errors lower. The rest of a change that was found worth it does not.
    const double current_ms = time_ms(unfinished_ ? now : cautious_costs(), current);
    const bool is_young = updates_ <= options_.young;
    const double gain = unfinished_ || is_young ? options_.small_gain : options_.least_gain;
    const double best_ms = time_ms(now, best);
    const double next_ms = time_ms(now, next);
    const bool adopt = best_ms < (1 - gain) * current_ms && next_ms < current_ms;
    unfinished_ = adopt && best_ms < (1 - options_.small_gain) * next_ms;
    if (!adopt)
        return std::nullopt;
    return next;
}

std::vector<StepCost> SpeedTracker::costs() const {
    std::vector<StepCost> costs = calibrated_;
    for (std::size_t r = 0; r < costs.size(); ++r)
        costs[r].scale *= ranks_[r].scale.value();
    return costs;
}

std::vector<StepCost> SpeedTracker::cautious_costs() const {
    std::vector<StepCost> cautious = costs();
    for (std::size_t r = 0; r < cautious.size(); ++r)
        cautious[r].scale *= std::max(0.0, 1 - 2 * ranks_[r].scale.standard_error());
    return cautious;
}

double SpeedTracker::time_ms(std::span<const StepCost> costs,
                             std::span<const std::int64_t> allocation) const {
    return options_.communication_ms.empty()
               ? makespan_ms(costs, allocation)
               : makespan_ms(costs, allocation, options_.communication_ms);
}

}  // namespace hetseq
