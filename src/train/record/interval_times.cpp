#include "hetseq/train/record/interval_times.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "hetseq/comm/host_comm.hpp"

namespace hetseq {

void IntervalTimes::add(const RankTimes& times) {
    for (const RankTimeText& text : rank_time_texts)
        if (const auto& ms = times[text.time])
            add(text.time, *ms);
}

void IntervalTimes::add(RankTime time, double ms) {
    sums_[time].ms += ms;
    ++sums_[time].count;
}

ByRankTime<std::vector<double>> IntervalTimes::take(const HostComm& world) {
    const auto ranks = static_cast<std::size_t>(world.size());
    const auto own = static_cast<std::size_t>(world.rank());
    std::vector<double> means(rank_time_texts.size() * ranks);  // of other ranks 0, to be summed
    const auto of_time = [&](RankTime time) {
        return std::span(means).subspan(static_cast<std::size_t>(time) * ranks, ranks);
    };
    for (const RankTimeText& text : rank_time_texts) {
        const Sum& sum = sums_[text.time];
        of_time(text.time)[own] =
            sum.count > 0 ? sum.ms / sum.count : std::numeric_limits<double>::quiet_NaN();
    }
    sums_ = {};
    world.all_reduce(std::span(means), ReduceOp::sum);
    ByRankTime<std::vector<double>> by_rank;
    for (const RankTimeText& text : rank_time_texts) {
        const std::span<const double> times = of_time(text.time);
        if (!std::ranges::all_of(times, [](double ms) { return std::isnan(ms); }))
            by_rank[text.time].assign(times.begin(), times.end());
    }
    return by_rank;
}

}  // namespace hetseq
