#include "hetseq/session/pipeline/stage_rank.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/train/pipeline/pipeline_pass.hpp"

namespace hetseq {

namespace {

std::vector<int> peers_of(const Stage& stage, const std::vector<int>& partners) {
    std::set<int> peers(partners.begin(), partners.end());
    for (const int peer : {stage.previous, stage.next})
        if (peer != Stage::nobody)
            peers.insert(peer);
    return {peers.begin(), peers.end()};
}

Stage own_stage(const Model& model, const PipelineLayout& layout, int rank) {
    const PipelineLayout::Place place = layout.place_of(rank);
    const WorkerLayout& worker = layout.workers[place.worker];
    return stage_of(model, worker.cut, worker.ranks, place.stage);
}

ParameterHolders holders_of(const Model& model, const PipelineLayout& layout) {
    ParameterHolders holders;
    for (const WorkerLayout& worker : layout.workers)
        add_holders(model, worker.cut, worker.ranks, holders);
    return holders;
}

std::string role_of(const PipelineLayout& layout, int rank) {
    const PipelineLayout::Place place = layout.place_of(rank);
    const std::string stage = "stage " + std::to_string(place.stage) + " of " +
                              std::to_string(layout.workers[place.worker].ranks.size());
    return layout.workers.size() == 1 ? stage
                                      : stage + ", virtual worker " + std::to_string(place.worker);
}

}  // namespace

StageRank::StageRank(const MpiEnvironment& environment,
                     const HostComm& world,
                     const PipelineLayout& layout,
                     Model& model,
                     at::Device device,
                     const CommunicatorOptions& options,
                     const PeerChannel::Options& channel,
                     PairSums pair_sums)
    : layout_{layout},
      stage_{own_stage(model, layout, world.rank())},
      holders_{holders_of(model, layout)},
      shared_{world, environment, device, holders_, options},
      worker_{std::make_unique<HostComm>(
          world.split(static_cast<int>(layout.place_of(world.rank()).worker)))},
      channel_{std::make_unique<PeerChannel>(
          world,
          peers_of(stage_,
                   pair_sums == PairSums::by_messages ? shared_.partners() : std::vector<int>{}),
          device,
          environment.thread_support(),
          channel)},
      pass_{make_pipeline_pass(model, stage_, *worker_, *channel_)} {
    if (pair_sums == PairSums::by_messages)
        shared_.sum_pairs_by(*channel_);
    log::set_role(role_of(layout, world.rank()));
}

}  // namespace hetseq
