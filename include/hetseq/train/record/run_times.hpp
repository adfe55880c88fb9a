#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hetseq/util/rank_time.hpp"
#include "hetseq/train/record/distribution.hpp"

namespace hetseq {

/// One update on this rank: its times [ms], and its work.
struct TimedUpdate {
    double step_ms = 0;  // validation excluded
    RankTimes times = {};
    std::optional<double> finish_ratio = {};  // wait for the reduction over the last bucket's time
    std::int64_t samples = 0;                 // of all ranks
    std::int64_t units = 0;                   // the same
    std::int64_t own_units = 0;               // this rank's, as it is cut by
    bool is_full = true;                      // of a full batch
    std::int64_t computed = 1;  // batches that were computed in it; late updates: none, or several
    bool is_timed = true;  // false: `step_ms` is not what one update takes, late ones come at once
    std::int64_t cut_since = 0;  // the update since the start from which full batches are cut so
};

/// The distributions of many updates' times.
struct TimeDistributions {
    Distribution step_ms;
    ByRankTime<Distribution> by_time;
    Distribution unit_ms;  // compute time of a unit, where there were any
    Distribution samples_per_second, units_per_second;

    void add(const TimedUpdate& update);
    std::int64_t updates() const noexcept { return step_ms.count(); }
};

/// The times of a run's updates since it was last started. Takes the same memory, and the same time
/// for each update, however long the run is.
///
/// The steady state is without the first updates, which warm caches and allocators up: the first
/// tenth, at most 10.
class RunTimes {
public:
    void add(const TimedUpdate& update);
    /// A time that is known later than its update, or not of each one.
    void add_late(RankTime time, double ms);

    std::int64_t updates() const noexcept { return updates_; }
    double longest_step_ms() const noexcept { return longest_step_ms_; }
    std::int64_t own_units() const noexcept { return own_units_; }  // of all updates
    /// Of all updates.
    const Distribution& finish_ratio() const noexcept { return finish_ratio_; }

    /// In the steady state. Late times are those of all its updates, here and in `alike`.
    TimeDistributions steady() const;
    /// In the steady state, those of full batches that were cut like the last one, or in any way if
    /// these are fewer than 5, or those of all batches if none was full: their times can be
    /// compared with each other and with the costs at the end.
    TimeDistributions alike() const;
    /// All samples or units of the steady state over its time. Where late updates leave
    /// none, those of all updates, if all that were applied were computed in them.
    double samples_per_second() const;
    double units_per_second() const;

private:
    struct Sums {
        std::int64_t samples = 0;
        std::int64_t units = 0;
        double ms = 0;
        void add(const TimedUpdate& update);
    };
    Sums steady_sums() const;
    template <class Function>
    void for_first_steady(Function&& function) const;
    TimeDistributions with_late_times(TimeDistributions times) const;

    std::int64_t updates_ = 0;
    double longest_step_ms_ = 0;
    std::int64_t own_units_ = 0;
    Distribution finish_ratio_;
    std::vector<TimedUpdate> first_;  // which may warm up; the others:
    TimeDistributions all_, full_, alike_;
    Sums sums_, of_all_;  // in the steady state, and of all updates
    std::int64_t computed_ = 0;
    std::int64_t cut_since_ = 0;
    ByRankTime<std::vector<double>> first_late_;
    ByRankTime<Distribution> late_;  // without those
};

}  // namespace hetseq
