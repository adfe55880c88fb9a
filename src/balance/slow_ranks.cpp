#include "hetseq/balance/slow_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/allocate.hpp"

namespace hetseq {

namespace {

std::int64_t sum(std::span<const std::int64_t> units) {
    return std::accumulate(units.begin(), units.end(), std::int64_t{0});
}

// The middle one, of an even number the faster of the middle two. Empty lists have none.
double middle_ratio(std::vector<double> ratios) {
    const auto middle = ratios.begin() + (std::ssize(ratios) - 1) / 2;
    std::nth_element(ratios.begin(), middle, ratios.end());
    return *middle;
}

// The units of `rank`, cut over the others as theirs are. Empty where those have none.
std::vector<std::int64_t> without(std::size_t rank, std::vector<std::int64_t> allocation) {
    const std::int64_t all = sum(allocation);
    const std::int64_t others = all - allocation[rank];
    if (others == 0)
        return {};
    allocation[rank] = 0;
    const double more = static_cast<double>(all) / static_cast<double>(others);
    for (std::int64_t& units : allocation)
        units = static_cast<std::int64_t>(std::ceil(static_cast<double>(units) * more));
    return allocation;
}

}  // namespace

SlowRanks::SlowRanks(std::vector<StepCost> costs, SlowRanksOptions options)
    : costs_{std::move(costs)}, options_{std::move(options)}, ranks_(costs_.size()) {
    HETSEQ_ASSERT(options_.kinds.size() == costs_.size());
    std::map<int, std::vector<std::size_t>> members;
    for (std::size_t r = 0; r < costs_.size(); ++r) {
        costs_[r].scale = 1;
        members[options_.kinds[r]].push_back(r);
    }
    for (auto& [kind, ranks] : members)
        if (ranks.size() > 1)
            kinds_.push_back(std::move(ranks));
}

SlowRanks::Change SlowRanks::observe(std::span<const double> compute_ms,
                                     std::span<const std::int64_t> allocation) {
    if (kinds_.empty() || compute_ms.size() != ranks_.size() || allocation.size() != ranks_.size())
        return {};
    double longest_ms = 0;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const double ms = compute_ms[r];
        const double expected_ms = costs_[r].time_ms(allocation[r]) - costs_[r].update_ms;
        if (!(ms > 0) || !std::isfinite(ms) || allocation[r] == 0 || !(expected_ms > 0))
            continue;
        ranks_[r].ms += ms;
        ranks_[r].expected_ms += expected_ms;
        longest_ms = std::max(longest_ms, ms);
    }
    if (longest_ms == 0)
        return {};
    if (full_.empty() || sum(allocation) >= sum(full_))
        full_.assign(allocation.begin(), allocation.end());
    period_ms_ += longest_ms;
    ++updates_;
    return period_ms_ >= options_.period_ms && updates_ >= options_.least_updates ? close_period()
                                                                                  : Change{};
}

// By rank, as a part of its kind's; 0 where nothing was measured, or nothing to compare it with.
std::vector<double> SlowRanks::speeds_of_period() const {
    std::vector<double> speeds(ranks_.size(), 0);
    for (const std::vector<std::size_t>& members : kinds_) {
        std::vector<double> ratios;
        for (const std::size_t r : members)
            if (ranks_[r].expected_ms > 0)
                ratios.push_back(ranks_[r].ms / ranks_[r].expected_ms);
        if (ratios.size() < 2)
            continue;
        const double middle = middle_ratio(ratios);
        for (const std::size_t r : members)
            if (ranks_[r].expected_ms > 0)
                speeds[r] = middle * ranks_[r].expected_ms / ranks_[r].ms;
    }
    return speeds;
}

SlowRanks::Change SlowRanks::close_period() {
    const std::vector<double> speeds = speeds_of_period();
    for (Rank& rank : ranks_) {
        if (rank.expected_ms > 0)
            rank.ratio = rank.ms / rank.expected_ms;
        rank.ms = rank.expected_ms = 0;
    }
    period_ms_ = 0;
    updates_ = 0;
    std::vector<std::size_t> fell, still;
    Change change;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        Rank& rank = ranks_[r];
        if (speeds[r] == 0)
            continue;
        const bool is_slow = speeds[r] < options_.below;
        rank.well = is_slow ? 0 : rank.well + 1;
        if (rank.well == options_.periods)
            change.well.push_back(r);
        if (is_slow == rank.is_slow) {
            rank.contrary = 0;
            rank.speed_sum = 0;
            if (is_slow) {
                rank.speed = speeds[r];
                still.push_back(r);
            }
            continue;
        }
        rank.speed_sum += speeds[r];
        if (++rank.contrary < options_.periods)
            continue;
        rank.is_slow = is_slow;
        rank.speed = rank.speed_sum / rank.contrary;
        rank.contrary = 0;
        rank.speed_sum = 0;
        if (is_slow)
            fell.push_back(r);
        else
            change.recovered.push_back(r);
    }
    for (const std::size_t r : fell)
        change.slow.push_back(describe(r));
    for (const std::size_t r : still)
        change.still_slow.push_back(describe(r));
    return change;
}

std::vector<SlowRank> SlowRanks::slow() const {
    std::vector<SlowRank> slow;
    for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (ranks_[r].is_slow)
            slow.push_back(describe(r));
    return slow;
}

SlowRank SlowRanks::describe(std::size_t rank) const {
    std::vector<StepCost> costs = costs_;
    for (std::size_t r = 0; r < costs.size(); ++r)
        if (ranks_[r].ratio > 0)
            costs[r].scale = ranks_[r].ratio;
    SlowRank slow{.rank = rank, .speed = ranks_[rank].speed, .update_ms = update_ms(costs)};
    std::vector<StepCost> well = costs;
    well[rank].scale *= slow.speed;
    slow.well_ms = update_ms(std::move(well));
    if (options_.follows) {
        costs[rank].micro_batch = 0;
        slow.without_ms = update_ms(std::move(costs));
    } else if (const auto others = without(rank, full_); !others.empty()) {
        slow.without_ms = makespan_ms(costs, others);
    }
    return slow;
}

// Of the largest batch.
double SlowRanks::update_ms(std::vector<StepCost> costs) const {
    if (!options_.follows)
        return makespan_ms(costs, full_);
    try {
        return makespan_ms(costs, allocate(costs, sum(full_)));
    } catch (const BadConfig&) {
        return std::numeric_limits<double>::infinity();
    }
}

}  // namespace hetseq
