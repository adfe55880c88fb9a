#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/train/parameter_holders.hpp"

namespace hetseq {

class FlatParameters;
class HostComm;
class Model;
class MpiEnvironment;
class Optimizer;
class PairSum;
class PeerChannel;
struct ReplicaDrift;

/// Where a model is cut over ranks: the parameters of which several ranks have a copy each, since
/// stages of one pipeline share them, or since there are several pipelines. Parameters form groups
/// by the ranks that hold them. Each group sums its gradients among these.
class SharedParameters {
public:
    /// Collective over `world`. `holders`: of all parameters.
    SharedParameters(const HostComm& world,
                     const MpiEnvironment& environment,
                     at::Device device,
                     const ParameterHolders& holders,
                     const CommunicatorOptions& options);
    ~SharedParameters();
    SharedParameters(const SharedParameters&) = delete;
    SharedParameters& operator=(const SharedParameters&) = delete;

    /// The other ranks of groups of two that this rank belongs to, ascending.
    std::vector<int> partners() const;
    /// From now on groups of two sum by messages of `channel`, whose peers `partners` are. Such
    /// sums start behind the whole backward. `channel` outlives this, or is not used any more.
    void sum_pairs_by(PeerChannel& channel);

    /// The number of a parameter's group, the same on all ranks.
    std::size_t group_of(const std::string& name) const;
    /// The ranks of a group; null where this rank is the only one, or none of them.
    Communicator* among(std::size_t group) const;
    /// What sums a group of two; null where `among` does.
    PairSum* pair(std::size_t group) const;

    /// Whether this rank sums any gradients with others.
    bool has_any() const;
    /// Names of those for which another rank speaks: the first holder does.
    const std::vector<std::string>& spoken_for_elsewhere() const noexcept { return elsewhere_; }
    /// Collective. All holders get the values, and the optimizer's state, of the first.
    void copy_from_first(FlatParameters& parameters, Optimizer* optimizer) const;
    /// Collective. The same of the parameters that `model` does not train, which are in no flat
    /// tensor.
    void copy_frozen_from_first(const Model& model) const;
    /// Collective. All holders get what the first has of them in `flat`, a tensor like the flat
    /// gradients.
    void copy_from_first(const FlatParameters& parameters, const at::Tensor& flat) const;
    /// Collective over `world`; the same on all ranks. How far the copies are apart from those of
    /// their first holders: odd are the ranks whose device is like a first holder's, and whose
    /// copy is not. `devices`: by rank; like ones have one name.
    ReplicaDrift drift(const HostComm& world,
                       const FlatParameters& parameters,
                       const std::vector<std::string>& devices) const;

private:
    std::map<std::string, std::size_t> group_of_;       // by name
    std::vector<std::unique_ptr<Communicator>> among_;  // by group
    std::vector<int> first_;                            // holder of each group
    std::vector<std::optional<int>> partner_;           // by group
    std::map<int, std::unique_ptr<PairSum>> pairs_;     // by partner
    std::vector<std::string> elsewhere_;
};

}  // namespace hetseq
