#pragma once

#include <string>
#include <vector>

#include "hetseq/train/replica_sync.hpp"

namespace hetseq {

class Communicator;
class FlatParameters;
class HostComm;
class Optimizer;
class SharedParameters;

/// Compares replicas and makes them alike; of a pipeline's stages, what they share.
class ReplicaCheck {
public:
    /// All that is referred to outlives the check. `shared`: where ranks are stages of a pipeline,
    /// else null. `devices`: what each rank computes on, by rank.
    ReplicaCheck(const HostComm& world,
                 Communicator& communicator,
                 FlatParameters& parameters,
                 Optimizer& optimizer,
                 const SharedParameters* shared,
                 std::vector<std::string> devices);

    /// Collective; the same on all ranks.
    ReplicaDrift drift() const;
    /// Collective. All have the parameters and the optimizer's state of the lowest rank that holds
    /// them.
    void make_alike();

private:
    const HostComm& world_;
    Communicator& communicator_;
    FlatParameters& parameters_;
    Optimizer& optimizer_;
    const SharedParameters* shared_;
    std::vector<std::string> devices_;
};

}  // namespace hetseq
