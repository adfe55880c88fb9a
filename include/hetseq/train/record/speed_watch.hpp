#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetseq/balance/slow_ranks.hpp"

namespace hetseq {

class Recorder;
class RunHistory;
class SharePlan;

/// A rank, as the watch tells of it.
struct WatchedRank {
    std::string place;   // "rank 1 on node07"
    std::string device;  // that another start of the run knows again (RankInfo::mark)
    std::string name;    // of the device, for people
    bool is_gpu = false;
};

struct SpeedWatchOptions {
    std::vector<WatchedRank> ranks = {};  // empty: nothing is watched
    SlowRanksOptions limits = {};         // `kinds` by rank
};

/// Tells of ranks that stay far below like devices, in log and metrics.jsonl, and keeps them in the
/// run's history, where the next start may leave them out. For the rank that records.
class SpeedWatch {
public:
    /// `history` may be null: none is kept. All outlive the watch.
    SpeedWatch(const SharePlan& shares,
               Recorder& recorder,
               RunHistory* history,
               SpeedWatchOptions options);

    /// `compute_ms` and `allocation`: of one update, by rank (SlowRanks::observe). `updates`: of
    /// the run, so far.
    void observe(std::int64_t updates,
                 std::span<const double> compute_ms,
                 std::span<const std::int64_t> allocation);
    /// The ranks that are slow now.
    std::vector<SlowRank> slow() const { return slow_ranks_.slow(); }

private:
    void tell_recovered(std::int64_t updates, std::size_t rank);
    std::string text(const SlowRank& slow) const;

    Recorder& recorder_;
    RunHistory* history_;
    std::vector<WatchedRank> ranks_;
    SlowRanks slow_ranks_;
};

/// "forward and backward of an update take 310 ms, 240 ms if it were as fast as they, 260 ms
/// without it".
std::string cost_text(const SlowRank& slow);
/// What leaves the rank out, where that is faster; empty: it is not.
std::string drop_advice(const SlowRank& slow);

}  // namespace hetseq
