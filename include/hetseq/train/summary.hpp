#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hetseq {

class HostComm;
class RunFolder;
class SharePlan;
struct Topology;
struct TrainerReport;

/// How a run went, over all ranks: summary.json (docs/outputs.md).
struct Summary {
    struct Rank {
        int rank = 0;
        std::string host;
        std::string device;
        bool is_gpu = false;
        std::int64_t units = 0;
        double compute_ms = 0;  // median of an update
        double wait_ms = 0;
        double reduce_ms = 0;  // of all buckets, overlapped with backward or not
        double optimizer_ms = 0;
        double data_ms = 0;
        double peak_memory_mb = 0;
        double unit_ms = 0;  // own compute time of a unit; 0: the rank had no work
    };

    std::string status = "finished";
    double seconds = 0;
    double startup_s = 0;           // from the process's start to the first update
    double samples_per_second = 0;  // steady state
    double units_per_second = 0;
    double finish_ratio =
        0;  // median of the wait in finish() over the last bucket's own time, slowest rank
    std::string policy;
    double step_ms = 0;  // median of an update, steady state
    std::optional<double> equal_ms, proportional_ms, predicted_ms,
        bound_ms;  // of a full batch, by the measured rates
    std::vector<Rank> ranks;

    /// Of an update's time: what even the rank that waits least spends waiting for the reduction.
    double communication_share() const;
    /// bound_ms over step_ms, or nothing.
    std::optional<double> achieved() const;

    /// As JSON text, with what `report` holds.
    std::string json(const TrainerReport& report) const;
    /// The end report for people: rates, ranks, and how near the bound the run came.
    std::string text(const TrainerReport& report) const;
};

/// Collective; the same on all ranks. `batch_size`: of a full batch; `start_seconds`: of the
/// process, monotonic clock.
Summary summarise(const HostComm& world,
                  const Topology& topology,
                  SharePlan& shares,
                  std::int64_t batch_size,
                  const TrainerReport& report,
                  double start_seconds);

}  // namespace hetseq
