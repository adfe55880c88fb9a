#include "hetseq/train/record/run_times.hpp"

#include <algorithm>
#include <utility>

namespace hetseq {

namespace {

constexpr std::size_t longest_warm_up = 10;  // updates
constexpr std::int64_t enough = 5;           // updates, to tell what one takes

std::size_t warm_up(std::int64_t updates) {
    return std::min(longest_warm_up, static_cast<std::size_t>(updates / 10));
}

double per_second(double count, double ms) {
    return ms > 0 ? 1000 * count / ms : 0;
}

}  // namespace

void TimeDistributions::add(const TimedUpdate& update) {
    step_ms.add(update.step_ms);
    for (const RankTimeText& text : rank_time_texts)
        if (const auto& ms = update.times[text.time])
            by_time[text.time].add(*ms);
    if (const auto& ms = update.times[RankTime::compute]; ms && update.own_units > 0)
        unit_ms.add(*ms / static_cast<double>(update.own_units));
    samples_per_second.add(per_second(static_cast<double>(update.samples), update.step_ms));
    units_per_second.add(per_second(static_cast<double>(update.units), update.step_ms));
}

void RunTimes::Sums::add(const TimedUpdate& update) {
    samples += update.samples;
    units += update.units;
    ms += update.step_ms;
}

void RunTimes::add(const TimedUpdate& update) {
    ++updates_;
    longest_step_ms_ = std::max(longest_step_ms_, update.step_ms);
    own_units_ += update.own_units;
    of_all_.add(update);
    computed_ += update.computed;
    if (update.finish_ratio)
        finish_ratio_.add(*update.finish_ratio);
    if (std::exchange(cut_since_, update.cut_since) != update.cut_since)
        alike_ = {};
    if (!update.is_timed)
        return;
    if (first_.size() < longest_warm_up) {
        first_.push_back(update);
        return;
    }
    all_.add(update);
    sums_.add(update);
    if (!update.is_full)
        return;
    full_.add(update);
    alike_.add(update);
}

void RunTimes::add_late(RankTime time, double ms) {
    if (first_late_[time].size() < longest_warm_up)
        first_late_[time].push_back(ms);
    else
        late_[time].add(ms);
}

// Calls `function` with each of the first updates that does not warm up, and its index.
template <class Function>
void RunTimes::for_first_steady(Function&& function) const {
    for (std::size_t i = warm_up(updates_); i < first_.size(); ++i)
        function(first_[i], static_cast<std::int64_t>(i));
}

TimeDistributions RunTimes::steady() const {
    TimeDistributions times = all_;
    for_first_steady([&](const TimedUpdate& update, std::int64_t) { times.add(update); });
    return with_late_times(std::move(times));
}

TimeDistributions RunTimes::alike() const {
    TimeDistributions alike = alike_, full = full_;
    for_first_steady([&](const TimedUpdate& update, std::int64_t index) {
        if (!update.is_full)
            return;
        full.add(update);
        if (index >= cut_since_)
            alike.add(update);
    });
    if (alike.updates() >= enough)
        return with_late_times(std::move(alike));
    return full.updates() > 0 ? with_late_times(std::move(full)) : steady();
}

TimeDistributions RunTimes::with_late_times(TimeDistributions times) const {
    for (const RankTimeText& text : rank_time_texts) {
        const std::vector<double>& first = first_late_[text.time];
        const auto count = static_cast<std::int64_t>(first.size()) + late_[text.time].count();
        if (count == 0)
            continue;
        Distribution& late = times.by_time[text.time];
        late = late_[text.time];
        for (std::size_t i = warm_up(count); i < first.size(); ++i)
            late.add(first[i]);
    }
    return times;
}

RunTimes::Sums RunTimes::steady_sums() const {
    Sums sums = sums_;
    for_first_steady([&](const TimedUpdate& update, std::int64_t) { sums.add(update); });
    if (sums.ms > 0)
        return sums;
    return computed_ == updates_ ? of_all_ : Sums{};
}

double RunTimes::samples_per_second() const {
    const Sums sums = steady_sums();
    return per_second(static_cast<double>(sums.samples), sums.ms);
}

double RunTimes::units_per_second() const {
    const Sums sums = steady_sums();
    return per_second(static_cast<double>(sums.units), sums.ms);
}

}  // namespace hetseq
