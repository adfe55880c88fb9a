#include "hetseq/session/pipeline/stage_rank.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/pipeline/pipeline_pass.hpp"

namespace hetseq {

namespace {

std::vector<int> peers_of(const Stage& stage) {
    std::vector<int> peers;
    for (const int peer : {stage.previous, stage.next})
        if (peer != Stage::nobody)
            peers.push_back(peer);
    return peers;
}

}  // namespace

std::size_t StageRank::stage_number(const PipelineLayout& layout, int rank) {
    const auto found = std::find(layout.ranks.begin(), layout.ranks.end(), rank);
    HETSEQ_ASSERT(found != layout.ranks.end());
    return static_cast<std::size_t>(found - layout.ranks.begin());
}

StageRank::StageRank(const MpiEnvironment& environment,
                     const HostComm& world,
                     const PipelineLayout& layout,
                     Model& model,
                     at::Device device,
                     const CommunicatorOptions& options)
    : layout_{layout},
      stage_{stage_of(model, layout.cut, layout.ranks, stage_number(layout, world.rank()))},
      holders_{parameter_holders(model, layout.cut, layout.ranks)},
      tied_{world, environment, device, holders_, options},
      world_{std::make_unique<HostComm>(world.duplicate())},
      channel_{std::make_unique<PeerChannel>(
          world, peers_of(stage_), device, environment.thread_support(), PeerChannel::Options{})},
      pass_{make_pipeline_pass(model, stage_, *world_, *channel_)} {
    log::set_role("stage " + std::to_string(stage_.number) + " of " +
                  std::to_string(stage_.stages));
}

}  // namespace hetseq
