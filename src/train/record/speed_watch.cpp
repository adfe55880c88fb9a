#include "hetseq/train/record/speed_watch.hpp"

#include <cmath>
#include <utility>

#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/record/run_history.hpp"
#include "hetseq/train/shares/share_plan.hpp"

namespace hetseq {

namespace {

// Without the ranks to watch, no kinds are known.
SlowRanks slow_ranks(const SharePlan& shares, const SpeedWatchOptions& options) {
    return options.ranks.empty() ? SlowRanks({}, {}) : SlowRanks(shares.costs(), options.limits);
}

}  // namespace

SpeedWatch::SpeedWatch(const SharePlan& shares,
                       Recorder& recorder,
                       RunHistory* history,
                       SpeedWatchOptions options)
    : recorder_{recorder},
      history_{history},
      ranks_{options.ranks},
      slow_ranks_{slow_ranks(shares, options)} {}

void SpeedWatch::observe(std::int64_t updates,
                         std::span<const double> compute_ms,
                         std::span<const std::int64_t> allocation) {
    const SlowRanks::Change change = slow_ranks_.observe(compute_ms, allocation);
    for (const SlowRank& slow : change.slow) {
        recorder_.event(updates, text(slow));
        if (history_ != nullptr)
            history_->slow(ranks_[slow.rank].device, slow.speed);
    }
    for (const std::size_t rank : change.recovered)
        tell_recovered(updates, rank);
    if (history_ == nullptr)
        return;
    for (const SlowRank& slow : change.still_slow)
        history_->slow(ranks_[slow.rank].device, slow.speed);
    for (const std::size_t rank : change.well)  // an earlier start may have found it slow
        if (history_->is_slow(ranks_[rank].device))
            tell_recovered(updates, rank);
}

void SpeedWatch::tell_recovered(std::int64_t updates, std::size_t rank) {
    recorder_.event(
        updates, ranks_[rank].place + " is as fast as like devices again", log::Level::info);
    if (history_ != nullptr)
        history_->recovered(ranks_[rank].device);
}

std::string SpeedWatch::text(const SlowRank& slow) const {
    const WatchedRank& rank = ranks_[slow.rank];
    return rank.place + " computes at " + percent_text(slow.speed, 2) +
           " of the speed of like devices (" + rank.name + "): " + cost_text(slow) + "; look at " +
           (rank.is_gpu ? "its clocks and temperature (nvidia-smi -q -d PERFORMANCE), and at other "
                          "processes on it"
                        : "other processes of its host, and at its memory (a host that swaps is "
                          "slow)") +
           (history_ != nullptr ? drop_advice(slow) : "");
}

std::string drop_advice(const SlowRank& slow) {
    constexpr double step = 0.05, rounding = 1e-9;
    if (slow.without_ms > slow.update_ms)
        return "";
    return "; --drop-below " +
           format_number(step * (std::floor(slow.speed / step + rounding) + 1), 2) +
           " leaves it out at the next start";
}

std::string cost_text(const SlowRank& slow) {
    const auto ms = [](double value) { return format_number(value, 3) + " ms"; };
    return "forward and backward of an update take " + ms(slow.update_ms) + ", " +
           ms(slow.well_ms) + " if it were as fast as they, " +
           (std::isfinite(slow.without_ms) ? ms(slow.without_ms) + " without it"
                                           : "and the others cannot do without it");
}

}  // namespace hetseq
