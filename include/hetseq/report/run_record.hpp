#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/rank_time.hpp"
#include "hetseq/report/charts/allocation_chart.hpp"
#include "hetseq/report/charts/series.hpp"

namespace hetseq {

struct RunEvent {
    std::int64_t update = 0;
    std::string message;
};

/// The contents of metrics.jsonl.
struct RunMetrics {
    std::map<std::string, Series> train, valid;  // by key, over updates
    std::vector<RunEvent> events;                // the first ones
    std::int64_t events_left_out = 0;
    std::vector<AllocationFrom> allocations;  // as they changed from line to line
    std::int64_t last_update = 0;
    double epoch = 0;  // of the last line
    std::int64_t train_lines = 0;
    std::int64_t timed_lines = 0;    // that know the ranks' times
    double step_ms = 0;              // mean over those
    std::vector<double> compute_ms;  // likewise, by rank
};

/// The contents of summary.json; a number that it lacks is absent.
struct RunSummary {
    struct Rank {
        std::string name;      // "rank 0, host, device"
        RankTimes times = {};  // medians of an update [ms]
    };
    /// A virtual worker, or a layout that was weighed; times of an update [ms], planned 0: unknown.
    struct Worker {
        std::size_t stages = 0;
        double planned_ms = 0, ms = 0;          // forward and backward
        double planned_bubble = 0, bubble = 0;  // in which stages compute nothing
    };
    struct Layout {
        std::string name;
        double planned_ms = 0;
        bool fits = true;
    };
    std::string status;
    std::map<std::string, double> numbers;  // by key, nested ones as "balance.bound_ms"
    std::string policy;
    bool is_exact = true;  // false: its results depend on how batches were cut
    std::string unit;      // what work is counted in: "samples" or "tokens"; empty: not said
    std::vector<Rank> ranks;
    std::vector<Worker> workers;
    std::vector<Layout> layouts;  // the one that was taken first
    std::vector<std::string> advice;

    std::optional<double> number(const std::string& key) const;
};

/// One run, as far as its folder describes it.
struct RunRecord {
    std::string name;
    std::map<std::string, std::string> options;  // of config.cfg
    RunMetrics metrics;
    std::optional<RunSummary> summary;
    std::vector<AllocationFrom> allocations;  // allocations.json's, otherwise those of the metrics
    std::vector<std::string> missing;         // what could not be read, as sentences
};

/// Reads config.cfg, metrics.jsonl, summary.json and allocations.json of the run in `folder`. A
/// file that is missing, torn or of another kind is left out and named in `missing`: the run may
/// still be going on, or it was killed. Throws MissingInput when there is no such folder or it
/// holds no run.
RunRecord read_run(const std::string& folder);

/// The same of several, whose names are their paths without the folders that all lie in.
std::vector<RunRecord> read_runs(const std::vector<std::string>& folders);

}  // namespace hetseq
