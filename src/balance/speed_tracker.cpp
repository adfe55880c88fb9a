#include "hetseq/balance/speed_tracker.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"
#include "hetseq/balance/median.hpp"
#include "hetseq/balance/trust_region.hpp"

#include "lasting_scales.hpp"
#include "middle_mean.hpp"

namespace hetseq {

namespace {

constexpr double no_limit_ms = std::numeric_limits<double>::infinity();
const double fade = std::exp2(-1.0 / 50);  // of what a scale differs from 1, an update
constexpr int longest_retry = 1 << 20;     // updates

// A process that shares a core doubles a rank's time, and goes away again within seconds. Only a
// larger factor counts at once as a new speed, and only a smaller one as an error of the
// calibration.
constexpr double sudden_factor = 2.4;
constexpr double most_over_believed = 5;  // of one update: it is not to speak for its block
constexpr double correction_factor = 1.3;

constexpr int corrections_begin = 5, corrections_end = 20;  // updates
constexpr double correction_ms = 5000, soon_ms = 1000;
constexpr double correction_errors = 4;
constexpr double correction_spread = 0.02;  // of a block's gain, as if 3 had shown it

constexpr std::size_t lasting_batches = 3;
constexpr double lasting_errors = 5;
constexpr double lasting_gain_spread = 0.06;  // of a batch's gain, as if 3 had shown it

// Changes that follow each other quickly need more and more evidence, because many of them turned
// out to be noise.
constexpr double short_lived_ms = 30000;  // a sudden change that another one follows within
constexpr int most_caution = 8;
constexpr double more_doubt = 1.5, most_doubt = 3;
const double forgiveness = std::exp2(-1.0 / 24);  // of the doubt, a batch

constexpr double rounding = 1e-6;  // of a gain, far below any that counts

constexpr int least_updates = 5;  // that tell a scale
constexpr double most_over_typical = 3;

using Blocks = std::vector<std::vector<const TimeBlock*>>;

// The mean ratio of a rank's updates in a block, each limited to `most`; not-a-number if a time is
// unknown.
double mean_ratio(const std::vector<const TimeBlock*>& block, std::size_t rank, double most) {
    double sum = 0;
    for (const TimeBlock* update : block) {
        if (!update->knows(rank))
            return std::numeric_limits<double>::quiet_NaN();
        sum += std::min(most, update->ratio(rank));
    }
    return sum / static_cast<double>(block.size());
}

std::vector<double> mean_ratios(const Blocks& blocks, std::size_t rank) {
    std::vector<double> means;
    for (const auto& block : blocks)
        means.push_back(mean_ratio(block, rank, no_limit_ms));
    return means;
}

// Whether five blocks in six show `rank` slower, or all show it faster, than `scale` by the sudden
// factor. Few blocks tell that it is not so.
bool shows_another_speed(const Blocks& blocks, std::size_t rank, double scale) {
    const std::ptrdiff_t most_others = std::ssize(blocks) / 6;
    std::ptrdiff_t seen = 0, slower = 0, faster = 0;
    for (const auto& block : blocks) {
        const double ratio = mean_ratio(block, rank, most_over_believed * scale);
        if (std::isnan(ratio))
            return false;
        ++seen;
        slower += ratio > scale * sudden_factor ? 1 : 0;
        faster += ratio < scale / sudden_factor ? 1 : 0;
        if (seen - std::max(slower, faster) > most_others)
            return false;
    }
    return seen > 0;
}

// More than the part of the present cut's time that `other` saves in any update, however slow each
// rank is in it: the part that the rank saves which `other` relieves most.
double most_gain(std::span<const StepCost> costs,
                 std::span<const std::int64_t> current,
                 std::span<const std::int64_t> other) {
    double most = 0;
    for (std::size_t r = 0; r < costs.size(); ++r)
        if (other[r] < current[r]) {
            StepCost cost = costs[r];
            cost.update_ms = 0;
            most = std::max(most, 1 - cost.time_ms(other[r]) / cost.time_ms(current[r]));
        }
    return most;
}

std::int64_t units_of_all(std::span<const std::int64_t> units) {
    return std::accumulate(units.begin(), units.end(), std::int64_t{0});
}

}  // namespace

SpeedTracker::SpeedTracker(std::vector<StepCost> costs, SpeedTrackerOptions options)
    : calibrated_{std::move(costs)}, options_{std::move(options)}, ranks_(calibrated_.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        ranks_[r].retry_after = options_.retry_after;
        ranks_[r].scale = std::exchange(calibrated_[r].scale, 1);
        ranks_[r].update_ms = std::exchange(calibrated_[r].update_ms, 0);
    }
    if (options_.kinds.empty()) {
        options_.kinds.resize(ranks_.size());
        std::iota(options_.kinds.begin(), options_.kinds.end(), 0);
    }
    HETSEQ_ASSERT(options_.kinds.size() == ranks_.size());
}

void SpeedTracker::observe(std::span<const double> compute_ms,
                           std::span<const std::int64_t> allocation,
                           std::span<const double> update_ms) {
    HETSEQ_ASSERT(compute_ms.size() == ranks_.size() && allocation.size() == ranks_.size());
    HETSEQ_ASSERT(update_ms.empty() || update_ms.size() == ranks_.size());
    const Scales zeros(ranks_.size(), 0);
    TimeBlock update{.ms = zeros, .expected_ms = zeros, .update_ms = zeros, .updates = 1};
    Scales middles;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        if (allocation[r] == 0) {
            if (ranks_[r].worked > 0)
                ranks_[r].scale = scale_now(r, middles);
            observe_idle(ranks_[r]);
            continue;
        }
        observe_work(ranks_[r]);
        if (!std::isfinite(compute_ms[r]) || compute_ms[r] <= 0)
            continue;
        update.ms[r] = compute_ms[r];
        update.expected_ms[r] = calibrated_[r].time_ms(allocation[r]);
        update.update_ms[r] = update_ms.empty() ? 0 : update_ms[r];
        update.span_ms = std::max(update.span_ms, update.ms[r] + update.update_ms[r]);
    }
    since_sudden_ms_ += update.span_ms;
    history_.add(std::move(update));
}

// A rank that soon lost its work again after a retry waits twice as long for the next retry.
void SpeedTracker::observe_idle(Rank& rank) const {
    if (rank.worked > 0) {
        const bool in_vain = rank.retried && rank.worked < options_.retry_after;
        rank.retry_after =
            in_vain ? std::min(2 * rank.retry_after, longest_retry) : options_.retry_after;
        rank.worked = 0;
    }
    if (++rank.idle > rank.retry_after)
        rank.scale = 1 + (rank.scale - 1) * fade;
}

void SpeedTracker::observe_work(Rank& rank) const {
    if (rank.worked++ == 0)
        rank.retried = rank.idle > rank.retry_after;
    rank.idle = 0;
}

bool SpeedTracker::observes_slowly(std::span<const std::int64_t> allocation) const {
    if (history_.updates() < least_updates)
        return false;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (allocation[r] == 0 && ranks_[r].worked > 0)
            return true;
    return false;
}

bool SpeedTracker::is_quiet(std::span<const std::int64_t> current) const {
    if (units_of_all(current) == 0 || history_.updates() == 0)
        return true;
    return !history_.batch_ended() && !is_correction_due() &&
           changed_suddenly(history_.last_blocks(caution_)).empty();
}

std::optional<std::vector<std::int64_t>> SpeedTracker::propose(
    std::span<const std::int64_t> current) {
    HETSEQ_ASSERT(current.size() == ranks_.size());
    if (is_quiet(current))
        return std::nullopt;
    if (auto next = sudden_change(current))
        return next;
    if (auto next = correction(current))
        return next;
    return lasting_change(current);
}

// The scale in `costs()`, of a single rank. `middles`: the middle ratio of each rank in the whole
// history, 0 where none is known; filled when it is empty.
double SpeedTracker::scale_now(std::size_t rank, Scales& middles) const {
    if (history_.updates() < least_updates)
        return ranks_[rank].scale;
    if (middles.empty()) {
        const std::vector<const TimeBlock*> blocks = history_.blocks();
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            std::vector<double> ratios;
            for (const TimeBlock* block : blocks)
                if (block->knows(r))
                    ratios.push_back(block->ratio(r));
            middles.push_back(ratios.empty() ? 0 : middle_mean(std::move(ratios)));
        }
    }
    std::vector<double> of_group;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (options_.kinds[r] == options_.kinds[rank] && ranks_[r].scale == ranks_[rank].scale)
            of_group.push_back(middles[r] > 0 && ranks_[r].idle == 0 ? middles[r]
                                                                     : ranks_[r].scale);
    return middle_mean(std::move(of_group));
}

// The ranks that were far from their assumed speed in all of the last updates.
std::vector<std::size_t> SpeedTracker::changed_suddenly(const Blocks& blocks) const {
    std::vector<std::size_t> changed;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (shows_another_speed(blocks, r, ranks_[r].scale))
            changed.push_back(r);
    return changed;
}

// Changes the scales of those ranks. The others keep their scales.
std::optional<std::vector<std::int64_t>> SpeedTracker::sudden_change(
    std::span<const std::int64_t> current) {
    const Blocks blocks = history_.last_blocks(caution_);
    const std::vector<std::size_t> changed = changed_suddenly(blocks);
    if (changed.empty())
        return std::nullopt;
    std::vector<StepCost> costs = whole(believed(), measured_update_ms());
    for (const std::size_t r : changed) {
        const double scale = middle_mean(mean_ratios(blocks, r));
        costs[r].update_ms *= scale / std::exchange(costs[r].scale, scale);
    }
    const Units best = allocate(costs, units_of_all(current));
    if (makespan_ms(costs, best) >= (1 - options_.least_gain) * makespan_ms(costs, current))
        return std::nullopt;
    caution_ = since_sudden_ms_ < short_lived_ms ? std::min(2 * caution_, most_caution) : 1;
    Units next = adopt(best, costs, current, false);
    was_sudden_ = true;
    since_sudden_ms_ = 0;
    return next;
}

bool SpeedTracker::is_correction_due() const {
    const int updates = history_.updates();
    const bool is_due =
        history_.batch_ended() || (updates % corrections_begin == 0 && updates <= corrections_end);
    return may_correct_ && is_due && history_.span_ms() >= (was_sudden_ ? soon_ms : correction_ms);
}

// The first seconds after a calibration or a sudden change say more than the calibration, or than
// the few updates that showed the change.
std::optional<std::vector<std::int64_t>> SpeedTracker::correction(
    std::span<const std::int64_t> current) {
    if (!is_correction_due())
        return std::nullopt;
    if (history_.updates() > corrections_end && history_.batches().size() >= lasting_batches)
        may_correct_ = false;
    const std::vector<const TimeBlock*> blocks = history_.blocks();
    Scales scales = measured(blocks);
    pool(scales, believed_alike());
    std::vector<double> factors;
    for (std::size_t r = 0; r < scales.size(); ++r)
        factors.push_back(scales[r] / ranks_[r].scale);
    const double typical = median(factors);
    for (const double factor : factors)
        if (std::max(factor / typical, typical / factor) > correction_factor)
            return std::nullopt;
    const std::vector<StepCost> costs = whole(scales, measured_update_ms());
    const Units best = allocate(costs, units_of_all(current));
    if (most_gain(costs, current, best) < options_.small_gain - rounding)
        return std::nullopt;
    std::vector<std::vector<RatioBlock>> observed;
    for (const TimeBlock* block : blocks)
        observed.push_back({ratios(*block, scales)});
    const std::vector<double> gains = paired_gains(observed, costs, current, best);
    if (!estimate(gains, correction_spread).exceeds(options_.small_gain, correction_errors))
        return std::nullopt;
    return adopt(best, costs, current, true);
}

// Looks at the last batches, and at fewer of them, since the change may have come later than the
// cut.
std::optional<std::vector<std::int64_t>> SpeedTracker::lasting_change(
    std::span<const std::int64_t> current) {
    if (!history_.batch_ended())
        return std::nullopt;
    doubt_ = 1 + (doubt_ - 1) * forgiveness;
    const auto& batches = history_.batches();
    if (batches.size() < lasting_batches)
        return std::nullopt;
    std::vector<bool> is_idle;
    for (const Rank& rank : ranks_)
        is_idle.push_back(rank.idle > 0);
    const std::vector<double> update_ms = measured_update_ms();
    LastingScales lasting(batches, believed(), std::move(is_idle), options_.kinds);
    Scales scales;
    while (lasting.taken() < batches.size()) {
        lasting.take_batch();
        if (lasting.taken() < lasting_batches)
            continue;
        scales = lasting.scales();
        const std::vector<StepCost> costs = whole(scales, update_ms);
        const Units best = allocate(costs, units_of_all(current));
        if (most_gain(costs, current, best) < options_.least_gain - rounding)
            continue;
        std::vector<std::vector<RatioBlock>> observed;
        for (auto batch = batches.end() - std::ptrdiff_t(lasting.taken()); batch != batches.end();
             ++batch) {
            observed.emplace_back();
            for (const TimeBlock& block : *batch)
                observed.back().push_back(ratios(block, scales));
        }
        const std::vector<double> gains = paired_gains(observed, costs, current, best);
        if (estimate(gains, lasting_gain_spread)
                .exceeds(options_.least_gain, doubt_ * lasting_errors)) {
            doubt_ = std::min(more_doubt * doubt_, most_doubt);
            return adopt(best, costs, current, true);
        }
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        ranks_[r].scale = scales[r];
    return std::nullopt;
}

// A step towards `best`. From now on, the scales that led to it are assumed.
std::vector<std::int64_t> SpeedTracker::adopt(const Units& best,
                                              const std::vector<StepCost>& costs,
                                              std::span<const std::int64_t> current,
                                              bool is_settled) {
    Units next = step_towards(best, current, costs, options_.trust_factor);
    const bool is_cut_short =
        makespan_ms(costs, best) < (1 - options_.small_gain) * makespan_ms(costs, next);
    may_correct_ = !is_settled || is_cut_short;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        ranks_[r].scale = costs[r].scale;
        ranks_[r].update_ms = costs[r].update_ms;
    }
    history_.forget();
    was_sudden_ = false;
    return next;
}

SpeedTracker::Scales SpeedTracker::believed() const {
    Scales scales;
    for (const Rank& rank : ranks_)
        scales.push_back(rank.scale);
    return scales;
}

// The assumed scale where no time is known.
SpeedTracker::Scales SpeedTracker::measured(std::span<const TimeBlock* const> blocks) const {
    Scales scales = believed();
    for (std::size_t r = 0; r < scales.size(); ++r) {
        std::vector<double> ratios;
        for (const TimeBlock* block : blocks)
            if (block->knows(r) && ranks_[r].idle == 0)
                ratios.push_back(block->ratio(r));
        if (!ratios.empty())
            scales[r] = middle_mean(std::move(ratios));
    }
    return scales;
}

// The ranks' ratios without single stalls; `typical` where no time is known.
RatioBlock SpeedTracker::ratios(const TimeBlock& block, const Scales& typical) const {
    RatioBlock result{typical, block.updates};
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (block.knows(r))
            result.ratios[r] = std::clamp(
                block.ratio(r), typical[r] / most_over_typical, typical[r] * most_over_typical);
    return result;
}

// Groups of like ranks that are assumed to be equally fast now.
std::vector<int> SpeedTracker::believed_alike() const {
    std::map<std::pair<int, double>, int> first;
    std::vector<int> groups;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        groups.push_back(
            first.emplace(std::pair(options_.kinds[r], ranks_[r].scale), static_cast<int>(r))
                .first->second);
    return groups;
}

std::vector<StepCost> SpeedTracker::scaled(const Scales& scales) const {
    std::vector<StepCost> costs = calibrated_;
    for (std::size_t r = 0; r < costs.size(); ++r)
        costs[r].scale = scales[r];
    return costs;
}

std::vector<double> SpeedTracker::measured_update_ms() const {
    std::vector<double> update_ms;
    for (const Rank& rank : ranks_)
        update_ms.push_back(rank.update_ms);
    if (history_.updates() < least_updates)
        return update_ms;
    const std::vector<const TimeBlock*> blocks = history_.blocks();
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        std::vector<double> times;
        for (const TimeBlock* block : blocks)
            if (block->knows(r))
                times.push_back(block->update_ms[r] / block->updates);
        if (!times.empty())
            update_ms[r] = middle_mean(std::move(times));
    }
    pool(update_ms, believed_alike());
    return update_ms;
}

std::vector<StepCost> SpeedTracker::whole(const Scales& scales,
                                          const std::vector<double>& update_ms) const {
    std::vector<StepCost> costs = scaled(scales);
    for (std::size_t r = 0; r < costs.size(); ++r)
        costs[r].update_ms = update_ms[r];
    return costs;
}

std::vector<StepCost> SpeedTracker::costs() const {
    if (history_.updates() < least_updates)
        return scaled(believed());
    Scales scales = measured(history_.blocks());
    pool(scales, believed_alike());
    return scaled(scales);
}

}  // namespace hetseq
