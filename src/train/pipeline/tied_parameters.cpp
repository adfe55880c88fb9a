#include "hetseq/train/pipeline/tied_parameters.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/replica_sync.hpp"

namespace hetseq {

namespace {

const FlatParameters::Parameter* find(const FlatParameters& parameters, const std::string& name) {
    const auto& all = parameters.parameters();
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const auto& parameter) { return parameter.name == name; });
    return found == all.end() ? nullptr : &*found;
}

at::Tensor part_of(const at::Tensor& flat, const FlatParameters::Parameter& parameter) {
    return flat.narrow(0, parameter.offset, parameter.numel);
}

}  // namespace

ParameterHolders parameter_holders(const Model& model,
                                   const ChainCut& cut,
                                   const std::vector<int>& ranks) {
    const std::vector<ChainUnit> chain = model.chain();
    ParameterHolders holders;
    for (std::size_t stage = 0; stage < cut.units.size(); ++stage)
        for (std::size_t unit = cut.units[stage].begin; unit < cut.units[stage].end; ++unit)
            for (const std::string& name : chain[unit].parameters)
                if (std::vector<int>& of_one = holders[name];
                    of_one.empty() || of_one.back() != ranks[stage])
                    of_one.push_back(ranks[stage]);
    return holders;
}

TiedParameters::TiedParameters(const HostComm& world,
                               const MpiEnvironment& environment,
                               at::Device device,
                               const ParameterHolders& holders,
                               const CommunicatorOptions& options) {
    std::map<std::vector<int>, std::vector<std::string>> shared;  // one order on all ranks
    for (const auto& [name, ranks] : holders)
        if (ranks.size() > 1)
            shared[ranks].push_back(name);
    for (const auto& [ranks, names] : shared) {
        const bool is_holder = std::count(ranks.begin(), ranks.end(), world.rank()) > 0;
        const bool speaks = ranks.front() == world.rank();
        const HostComm comm = world.split(is_holder ? 1 : 0, speaks ? 0 : 1);
        if (!is_holder)
            continue;
        groups_.push_back({make_communicator(comm, environment, device, options), names});
        if (!speaks)
            elsewhere_.insert(elsewhere_.end(), names.begin(), names.end());
    }
}

std::vector<TiedGradient> TiedParameters::gradients(const FlatParameters& parameters) const {
    std::vector<TiedGradient> gradients;
    for (const Group& group : groups_)
        for (const std::string& name : group.names)
            if (const FlatParameters::Parameter* const parameter = find(parameters, name))
                gradients.push_back(
                    {part_of(parameters.gradients(), *parameter), group.among.get()});
    return gradients;
}

double TiedParameters::drift(const HostComm& world, const FlatParameters& parameters) const {
    double largest = 0;
    for (const Group& group : groups_)
        for (const std::string& name : group.names)
            if (const FlatParameters::Parameter* const parameter = find(parameters, name)) {
                const at::Tensor own = part_of(parameters.values(), *parameter);
                const at::Tensor first = own.clone();
                group.among->broadcast(first, 0);
                largest = std::max(largest, largest_difference(own, first));
            }
    return world.all_reduce(largest, ReduceOp::max);
}

void TiedParameters::copy_from_first(const FlatParameters& parameters,
                                     const at::Tensor& flat) const {
    for (const Group& group : groups_)
        for (const std::string& name : group.names)
            if (const FlatParameters::Parameter* const parameter = find(parameters, name))
                group.among->broadcast(part_of(flat, *parameter), 0);
}

void TiedParameters::copy_from_first(FlatParameters& parameters, Optimizer* optimizer) const {
    const at::NoGradGuard no_grad;
    constexpr int first = 0;
    for (const Group& group : groups_)
        for (const std::string& name : group.names) {
            const FlatParameters::Parameter* const parameter = find(parameters, name);
            if (parameter == nullptr)
                continue;  // frozen
            group.among->broadcast(part_of(parameters.values(), *parameter), first);
            if (optimizer == nullptr)
                continue;
            for (const auto& [state_name, state] : optimizer->state())
                if (state.numel() == parameters.values().numel() && state.dim() == 1)
                    group.among->broadcast(part_of(state, *parameter), first);
        }
    if (optimizer != nullptr)
        optimizer->restored();
}

}  // namespace hetseq
