#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/balance/layout/measured_chain.hpp"
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
    double sent_share = 1;   // of these bytes, what gradients in bf16 send
    std::int64_t batch = 0;  // units; 0: not known
    std::optional<MeasuredChain> chain = {};
    bool is_pipelined = false;  // its ranks were stages: their times are of parts of the model
};

/// Gives the class a measured cost. The described micro-batch and most units stay if they are
/// smaller. `source` is named in errors. Throws BadData for a cost without work or time, BadConfig
/// for a table with a smaller micro-batch than it was measured with.
void take_cost(DeviceClass& device, const StepCost& cost, const std::string& source);

/// Fills in what `cluster` leaves open. A device without times takes them from the ranks whose
/// host, or the words of whose device's name, are the class's `measured` name: the cost of median
/// rate, or, if the runs have no costs, the mean updates (runs of several batches give a line, a
/// single one gives a proportion). Model and batch come from the first run. Without [links], the
/// links get the one bandwidth with which the model reproduces the first run's step time. Without
/// [layer] sections, the layers are the units of the chain that the first run measured, if it did
/// so for all devices and layouts of that many ranks can be compared. The result says what was
/// taken, one sentence each. Runs that trained as pipelines tell of layers alone. Throws BadConfig
/// for a device for which the runs have no rank with work, and no layers either.
std::vector<std::string> fill_from_runs(Cluster& cluster, std::span<const MeasuredRun> runs);

}  // namespace hetseq
