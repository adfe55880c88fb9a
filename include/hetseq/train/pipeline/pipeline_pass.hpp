#pragma once

#include <memory>

#include "hetseq/train/pass.hpp"
#include "hetseq/train/pipeline/stage.hpp"

namespace hetseq {

class HostComm;
class PeerChannel;

/// That of a rank which is a stage of a pipeline. Micro-batches are computed by 1F1B (Narayanan et
/// al. 2019, "PipeDream", with a flush: Fan et al. 2021, "DAPPLE"): a stage goes forward while it
/// has fewer than `most_in_flight` under way, and backward otherwise. Backwards come in the order
/// of micro-batches, so that gradients have the bits of a rank that has the whole model. A stage
/// that runs out of memory sends messages without tensors, and goes on. `world`: the pipeline's
/// ranks; all that is given outlives the pass.
std::unique_ptr<Pass> make_pipeline_pass(Model& model,
                                         const Stage& stage,
                                         const HostComm& world,
                                         PeerChannel& channel);

}  // namespace hetseq
