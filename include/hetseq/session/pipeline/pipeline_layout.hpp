#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hetseq/balance/step_cost.hpp"
#include "hetseq/train/pipeline/stage.hpp"

namespace hetseq {

/// The ranks of a virtual worker, which train one replica as a pipeline, and what each computes.
struct WorkerLayout {
    std::vector<int> ranks;  // by stage
    ChainCut cut;
    std::int64_t micro_batch = 0;     // samples, or padded tokens, of a micro-batch
    std::size_t extra_in_flight = 0;  // micro-batches, as `most_in_flight` takes them

    /// As planned by measured costs; empty and 0 where nothing was measured.
    double predicted_ms = 0;  // forward and backward of its part of a full batch
    double bubble = 0;        // the part of the stages' time in which they have no work
    std::vector<double> activations_mb = {};  // by stage: all micro-batches in flight, with
                                              // workspace and messages
    std::optional<StepCost> cost = {};        // its time for any part of a batch
};

/// How ranks train as pipelines. Each rank is in one worker.
struct PipelineLayout {
    std::vector<WorkerLayout> workers;
    std::int64_t batch = 0;  // a full one, in the units of workers' costs; 0: nothing was measured

    /// The ranks of all workers, in order.
    std::vector<int> ranks() const;
    /// A rank's place in the layout. InternalError where it has none.
    struct Place {
        std::size_t worker = 0;
        std::size_t stage = 0;
    };
    Place place_of(int rank) const;
    UnitRange units_of(int rank) const;
    std::vector<std::vector<int>> ranks_by_worker() const;
    /// `ranks`: ascending; each becomes its place among them.
    void renumber(const std::vector<int>& ranks);
};

/// `units` of each stage, from the first on, with `extra_in_flight` micro-batches more than there
/// are stages from each to the end (`most_in_flight`).
WorkerLayout given_worker(std::vector<int> ranks,
                          const std::vector<std::size_t>& units,
                          std::int64_t micro_batch,
                          std::size_t extra_in_flight = 0);

}  // namespace hetseq
