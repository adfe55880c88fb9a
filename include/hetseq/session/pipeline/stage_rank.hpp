#pragma once

#include <memory>
#include <optional>

#include <c10/core/Device.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/mpi/peer_channel.hpp"
#include "hetseq/train/parameter_holders.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/pipeline/shared_parameters.hpp"
#include "hetseq/train/pipeline/stage.hpp"
#include "hetseq/session/pipeline/pipeline_layout.hpp"

namespace hetseq {

class FlatParameters;
class HostComm;
class Model;
class MpiEnvironment;

/// How the gradients of parameters are summed that two ranks hold: when both have computed, or by
/// messages, each when it has computed (`PairSum`).
enum class PairSums { all_reduced, by_messages };

/// What a rank has as a stage of a pipeline, beside its part of the model.
class StageRank {
public:
    /// Collective over `world`, whose ranks are those of `layout`. `model` holds the units of this
    /// rank's stage and outlives this. Throws on all ranks.
    StageRank(const MpiEnvironment& environment,
              const HostComm& world,
              const PipelineLayout& layout,
              Model& model,
              at::Device device,
              const CommunicatorOptions& options,
              const PeerChannel::Options& channel,
              PairSums pair_sums);

    const PipelineLayout& layout() const noexcept { return layout_; }
    const Stage& stage() const noexcept { return stage_; }
    const ParameterHolders& holders() const noexcept { return holders_; }
    const SharedParameters& shared() const noexcept { return shared_; }
    Pass& pass() noexcept { return *pass_; }

private:
    PipelineLayout layout_;
    Stage stage_;
    ParameterHolders holders_;
    SharedParameters shared_;
    std::unique_ptr<HostComm> worker_;  // its ranks
    std::unique_ptr<PeerChannel> channel_;
    std::unique_ptr<Pass> pass_;
};

}  // namespace hetseq
