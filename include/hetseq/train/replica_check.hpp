#pragma once

#include <string>
#include <vector>

#include "hetseq/train/replica_sync.hpp"

namespace hetseq {

class Communicator;
class FlatParameters;
class HostComm;
class Model;
class Optimizer;
class SharedParameters;

/// Compares replicas, with what they do not train, and makes them alike; of a pipeline's stages,
/// the parameters that they share.
class ReplicaCheck {
public:
    /// All that is referred to outlives the check. `shared`: where ranks are stages of a pipeline,
    /// else null. `devices`: what each rank computes on, by rank.
    ReplicaCheck(const HostComm& world,
                 Communicator& communicator,
                 FlatParameters& parameters,
                 const Model& model,
                 Optimizer& optimizer,
                 const SharedParameters* shared,
                 std::vector<std::string> devices);

    /// Collective; the same on all ranks.
    ReplicaDrift drift() const;
    /// Collective. All have the parameters, what is alike beside them, and the optimizer's state of
    /// the lowest rank that holds them.
    void make_alike();

private:
    const HostComm& world_;
    Communicator& communicator_;
    FlatParameters& parameters_;
    const Model& model_;
    Optimizer& optimizer_;
    const SharedParameters* shared_;
    std::vector<std::string> devices_;
};

}  // namespace hetseq
