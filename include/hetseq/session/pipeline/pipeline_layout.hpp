#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetseq/train/pipeline/stage.hpp"

namespace hetseq {

/// Which ranks train one replica as a pipeline, and what each of them computes.
struct PipelineLayout {
    std::vector<int> ranks;  // by stage
    ChainCut cut;
    std::int64_t micro_batch = 0;     // samples, or padded tokens, of a micro-batch
    std::vector<int> job_ranks = {};  // by rank, its number in the job; empty: none was left out

    /// As planned by measured costs; empty and 0 where the cut was given and nothing was measured.
    double predicted_ms = 0;  // forward and backward of a full batch
    double bubble = 0;        // the part of the stages' time in which they have no work
    std::vector<double> activations_mb = {};  // by stage: all micro-batches in flight, with
                                              // workspace and messages
};

/// `units` of each stage, from the first on, with `extra_in_flight` micro-batches more than there
/// are stages from each to the end (`most_in_flight`).
PipelineLayout given_layout(std::vector<int> ranks,
                            const std::vector<std::size_t>& units,
                            std::int64_t micro_batch,
                            std::size_t extra_in_flight = 0);

}  // namespace hetseq
