#include "hetseq/train/replica_check.hpp"

#include <utility>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/pipeline/shared_parameters.hpp"

namespace hetseq {

ReplicaCheck::ReplicaCheck(const HostComm& world,
                           Communicator& communicator,
                           FlatParameters& parameters,
                           const Model& model,
                           Optimizer& optimizer,
                           const SharedParameters* shared,
                           std::vector<std::string> devices)
    : world_{world},
      communicator_{communicator},
      parameters_{parameters},
      model_{model},
      optimizer_{optimizer},
      shared_{shared},
      devices_{std::move(devices)} {
    // Values that are gathered have the same bits on unlike devices too.
    if (!parameters.state_ranges().empty())
        devices_.assign(devices_.size(), "");
}

ReplicaDrift ReplicaCheck::drift() const {
    if (shared_ != nullptr)
        return shared_->drift(world_, parameters_, devices_);
    return compare_replicas(
        world_, communicator_, parameters_, alike_beside(parameters_, model_), devices_);
}

void ReplicaCheck::make_alike() {
    if (shared_ != nullptr)
        shared_->copy_from_first(parameters_, &optimizer_);
    else
        copy_replica(communicator_, parameters_, alike_beside(parameters_, model_), optimizer_);
}

}  // namespace hetseq
