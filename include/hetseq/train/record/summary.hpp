#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/precision.hpp"
#include "hetseq/util/rank_time.hpp"
#include "hetseq/balance/layout/compared_layout.hpp"
#include "hetseq/balance/layout/measured_chain.hpp"
#include "hetseq/balance/slow_ranks.hpp"
#include "hetseq/train/record/statistics.hpp"

#include <nlohmann/json_fwd.hpp>

namespace hetseq {

class HostComm;
class RunFolder;
class SharePlan;
struct Topology;
struct TrainerReport;

/// How a run went, over all ranks: summary.json (docs/outputs.md).
struct Summary {
    /// A rank's stage, where ranks are the stages of a pipeline.
    struct Stage {
        std::size_t worker = 0;  // the number of its pipeline
        std::size_t number = 0;
        std::size_t first_unit = 0, units = 0;  // of the model's chain
        std::size_t in_flight = 0;              // micro-batches, at the most
        double sent_mb = 0;                     // an update, to other stages [MiB]
        double planned_mb = 0;                  // of memory; 0: not planned
    };
    struct Rank {
        int rank = 0;
        std::string host;
        std::string device;
        bool is_gpu = false;
        Precision precision = Precision::fp32;
        std::int64_t recomputed_layers = 0;
        std::int64_t units = 0;
        std::int64_t share = 0;      // units of a full batch, as it was cut last
        ByRankTime<double> ms = {};  // medians of an update
        double peak_memory_mb = 0;
        double unit_ms = 0;  // own compute time of a unit; 0: the rank had no work
        std::optional<Stage> stage = {};
    };
    /// A virtual worker, and how it was planned; 0: it was given, and nothing was measured.
    struct Worker {
        std::vector<int> ranks;        // by stage
        std::int64_t micro_batch = 0;  // samples, or tokens with padding
        double planned_ms = 0;         // forward and backward of its part of a full batch
        double planned_bubble = 0;
        double ms = 0;  // as measured, the median
    };

    /// Least, mean and most over the ranks of a class.
    struct Range {
        double min = 0, avg = 0, max = 0;
    };
    /// Ranks on devices of one name that compute in one precision. CPUs may have unlike quotas, so
    /// their classes are hosts.
    struct Class {
        std::string name;
        std::int64_t ranks = 0;
        std::int64_t units = 0;
        ByRankTime<Range> ms;
    };

    std::string status = "finished";
    double seconds = 0;
    double startup_s = 0;           // from the process's start to the first update
    double samples_per_second = 0;  // steady state
    double units_per_second = 0;
    std::string unit = "samples";           // what rates are told in
    double reported_units = 1;              // of that, in a unit of the ranks' work
    double padding = 0;                     // values added to ragged rows, over their own
    bool is_exact = true;                   // results do not depend on the cut (Model::is_exact)
    std::string shard = "none";             // what was cut over the ranks
    std::string reduce_precision = "fp32";  // in which gradients went from rank to rank
    double finish_ratio =
        0;  // median of the wait in finish() over the last bucket's own time, slowest rank
    std::string policy;
    // The times of an update are those of the steady state: full batches that were cut like the
    // last one, without the first tenth of the updates (at most 10).
    Spread step_ms;
    std::optional<double> equal_ms, proportional_ms, predicted_ms,
        bound_ms;  // of a full batch, by the measured rates
    std::vector<Rank> ranks;
    std::vector<Worker> workers;          // empty: each rank has a whole model
    std::vector<SlowRank> slow;           // far below like devices; on rank 0 alone
    std::vector<ComparedLayout> layouts;  // the one that was taken first; empty: none was weighed
    std::optional<MeasuredChain> chain;   // that this was weighed by

    /// The part of an update's time in which a worker's ranks compute nothing of it: they wait
    /// for each other, reduce or step.
    double bubble(const Worker& worker) const;
    /// By name.
    std::vector<Class> classes() const;
    /// The part of an update's time that even the rank that waits least spends waiting for the
    /// reduction.
    double communication_share() const;
    /// bound_ms divided by step_ms, if known; at most 1.
    std::optional<double> achieved() const;

    /// `layouts` and `workers` of summary.json; null where there are none.
    nlohmann::ordered_json layouts_json() const;
    nlohmann::ordered_json workers_json() const;
    /// The layout that was taken, and its pipelines, as planned and as measured; empty: neither.
    std::string workers_text() const;
    /// The summary as JSON text, together with `report`.
    std::string json(const TrainerReport& report) const;
    /// The final report for people: rates, ranks, and how near the run came to its bound.
    std::string text(const TrainerReport& report) const;
};

/// Collective; the same on all ranks. `precisions`: by rank. `batch_size`: units of a full batch;
/// `start_seconds`: of the process, monotonic clock.
Summary summarise(const HostComm& world,
                  const Topology& topology,
                  const std::vector<Precision>& precisions,
                  SharePlan& shares,
                  std::int64_t batch_size,
                  const TrainerReport& report,
                  double start_seconds);

}  // namespace hetseq
