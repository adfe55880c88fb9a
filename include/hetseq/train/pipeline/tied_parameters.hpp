#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/parameter_holders.hpp"
#include "hetseq/train/pipeline/stage.hpp"

namespace hetseq {

class FlatParameters;
class HostComm;
class Model;
class MpiEnvironment;
class Optimizer;

/// The holders of all parameters of `model`. `ranks`: by stage.
ParameterHolders parameter_holders(const Model& model,
                                   const ChainCut& cut,
                                   const std::vector<int>& ranks);

/// Parameters that several stages of a pipeline hold: each has its own copy, and its gradient's
/// parts are summed among them.
class TiedParameters {
public:
    /// Collective over `world`. Only trained ones count.
    TiedParameters(const HostComm& world,
                   const MpiEnvironment& environment,
                   at::Device device,
                   const ParameterHolders& holders,
                   const CommunicatorOptions& options);

    /// Names of those for which another rank speaks.
    const std::vector<std::string>& spoken_for_elsewhere() const noexcept { return elsewhere_; }
    /// Of those that this rank holds, in one order on all ranks.
    std::vector<TiedGradient> gradients(const FlatParameters& parameters) const;
    /// Collective. All holders get the values, and the optimizer's state, of the first.
    void copy_from_first(FlatParameters& parameters, Optimizer* optimizer) const;
    /// Collective. All holders get what the first has of them in `flat`, a tensor like the flat
    /// gradients.
    void copy_from_first(const FlatParameters& parameters, const at::Tensor& flat) const;
    /// Collective over `world`; the same on all ranks. How far the copies are apart.
    double drift(const HostComm& world, const FlatParameters& parameters) const;

private:
    struct Group {
        std::unique_ptr<Communicator> among;
        std::vector<std::string> names;
    };
    std::vector<Group> groups_;  // with this rank in them
    std::vector<std::string> elsewhere_;
};

}  // namespace hetseq
