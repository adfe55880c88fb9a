#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/plan/cluster.hpp"

namespace hetseq {

/// The update times that a run left behind (docs/outputs.md).
struct MeasuredRun {
    struct Rank {
        std::string host;
        std::string device;
        double units = 0;  // an update
        double compute_ms = 0;
        double wait_ms = 0;                 // for the slowest rank and for reductions
        std::int64_t micro_batch = 0;       // units; 0: not known
        std::optional<StepCost> cost = {};  // as followed to the end, with balance auto
    };

    std::string name;
    std::vector<Rank> ranks;
    double step_ms = 0;
    double model_bytes = 0;  // 0: not known
    double bucket_mib = 0;   // 0: not known
    std::int64_t batch = 0;  // units; 0: not known
};

/// Gives the class a measured cost; described micro-batch and most units stay where they are less.
/// `source` is named in errors. Throws BadData for a cost of no work or no time, BadConfig for a
/// table with a smaller micro-batch than it was measured with.
void take_cost(DeviceClass& device, const StepCost& cost, const std::string& source);

/// Fills in what `cluster` leaves open: the times of devices without any from the ranks whose host
/// is, or whose device's name holds the words of, the class's `measured` name: by their costs, of
/// which the one of median rate is taken, or, where the runs have none, by their mean updates (runs
/// of several batches give a line, one a proportion); model and batch from the first run; the
/// links, where no [links] are described, as the one bandwidth with which the model takes the first
/// run's step time. Says in the result, a sentence each, what it took. Throws BadConfig for a
/// device of which the runs have no rank with work.
std::vector<std::string> fill_from_runs(Cluster& cluster, std::span<const MeasuredRun> runs);

}  // namespace hetseq
