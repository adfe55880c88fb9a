#include "hetseq/train/pipeline/shared_parameters.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_buckets.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/pipeline/pair_sum.hpp"
#include "hetseq/train/replica_sync.hpp"

namespace hetseq {

namespace {

constexpr int first = 0;

// Neighbours of one group that this rank holds, in one order on all ranks.
std::vector<GradientBucket> runs_of(const SharedParameters& shared,
                                    const FlatParameters& parameters) {
    constexpr std::int64_t any_length = std::numeric_limits<std::int64_t>::max();
    return cut_buckets(parameters, any_length, [&](const FlatParameters::Parameter& parameter) {
        return shared.group_of(parameter.name);
    });
}

at::Tensor part_of(const at::Tensor& flat, const GradientBucket& run) {
    return flat.narrow(0, run.offset, run.numel);
}

}  // namespace

SharedParameters::SharedParameters(const HostComm& world,
                                   const MpiEnvironment& environment,
                                   at::Device device,
                                   const ParameterHolders& holders,
                                   const CommunicatorOptions& options) {
    std::map<std::vector<int>, std::vector<std::string>> groups;  // one order on all ranks
    for (const auto& [name, ranks] : holders)
        groups[ranks].push_back(name);
    for (const auto& [ranks, names] : groups) {
        for (const std::string& name : names)
            group_of_.emplace(name, among_.size());
        first_.push_back(ranks.front());
        auto& among = among_.emplace_back();
        auto& partner = partner_.emplace_back();
        if (ranks.size() < 2)
            continue;
        const bool is_holder = std::count(ranks.begin(), ranks.end(), world.rank()) > 0;
        const bool speaks = ranks.front() == world.rank();
        const HostComm comm = world.split(is_holder ? 1 : 0, speaks ? 0 : 1);
        if (!is_holder)
            continue;
        among = make_communicator(comm, environment, device, options);
        if (ranks.size() == 2)
            partner = speaks ? ranks.back() : ranks.front();
        if (!speaks)
            elsewhere_.insert(elsewhere_.end(), names.begin(), names.end());
    }
}

SharedParameters::~SharedParameters() = default;

std::vector<int> SharedParameters::partners() const {
    std::set<int> partners;
    for (const std::optional<int>& partner : partner_)
        if (partner)
            partners.insert(*partner);
    return {partners.begin(), partners.end()};
}

void SharedParameters::sum_pairs_by(PeerChannel& channel) {
    pairs_.clear();
    for (const int partner : partners())
        pairs_.emplace(partner, std::make_unique<PairSum>(channel, partner));
}

std::size_t SharedParameters::group_of(const std::string& name) const {
    return group_of_.at(name);
}

Communicator* SharedParameters::among(std::size_t group) const {
    return among_.at(group).get();
}

PairSum* SharedParameters::pair(std::size_t group) const {
    const std::optional<int>& partner = partner_.at(group);
    return partner && !pairs_.empty() ? pairs_.at(*partner).get() : nullptr;
}

// In the order of names, on all ranks.
void SharedParameters::copy_frozen_from_first(const Model& model) const {
    const at::NoGradGuard no_grad;
    for (const auto& [name, group] : group_of_) {
        Communicator* const holders = among(group);
        if (holders == nullptr || !model.is_held(name))
            continue;
        const at::Tensor parameter = model.find_parameter(name);
        if (parameter.requires_grad())
            continue;
        at::Tensor values = parameter.contiguous();
        holders->broadcast(values, first);
        if (!values.is_same(parameter))
            parameter.copy_(values);
    }
}

bool SharedParameters::has_any() const {
    return std::any_of(
        among_.begin(), among_.end(), [](const auto& among) { return among != nullptr; });
}

ReplicaDrift SharedParameters::drift(const HostComm& world,
                                     const FlatParameters& parameters,
                                     const std::vector<std::string>& devices) const {
    const at::NoGradGuard no_grad;
    const std::string& device = devices.at(static_cast<std::size_t>(world.rank()));
    ReplicaDrift own;
    bool is_odd = false;
    for (const GradientBucket& run : runs_of(*this, parameters)) {
        Communicator* const holders = among(run.group);
        if (holders == nullptr)
            continue;
        const at::Tensor values = part_of(parameters.values(), run);
        const at::Tensor of_first = values.clone();
        holders->broadcast(of_first, first);
        if (values.view(at::kByte).equal(of_first.view(at::kByte)))
            continue;
        is_odd = is_odd || devices.at(static_cast<std::size_t>(first_[run.group])) == device;
        for (const FlatParameters::Parameter& parameter : parameters.all_parameters()) {
            const std::int64_t begin = parameter.offset - run.offset;
            if (begin < 0 || begin >= run.numel)
                continue;
            const double difference =
                largest_difference(values.narrow(0, begin, parameter.numel),
                                   of_first.narrow(0, begin, parameter.numel));
            if (difference > own.largest_difference)
                own = {.largest_difference = difference, .tensor = parameter.name};
        }
    }
    const std::vector<double> differences = world.all_gather(own.largest_difference);
    const auto largest = std::max_element(differences.begin(), differences.end());
    ReplicaDrift drift{
        .largest_difference = *largest,
        .tensor = world.broadcast(own.tensor, static_cast<int>(largest - differences.begin()))};
    const std::vector<std::int64_t> odd = world.all_gather(std::int64_t{is_odd});
    for (std::size_t rank = 0; rank < odd.size(); ++rank)
        if (odd[rank] != 0)
            drift.odd_ranks.push_back(static_cast<int>(rank));
    return drift;
}

void SharedParameters::copy_from_first(const FlatParameters& parameters,
                                       const at::Tensor& flat) const {
    for (const GradientBucket& run : runs_of(*this, parameters))
        if (Communicator* const holders = among(run.group))
            holders->broadcast(part_of(flat, run), first);
}

void SharedParameters::copy_from_first(FlatParameters& parameters, Optimizer* optimizer) const {
    const at::NoGradGuard no_grad;
    for (const GradientBucket& run : runs_of(*this, parameters)) {
        Communicator* const holders = among(run.group);
        if (holders == nullptr)
            continue;
        holders->broadcast(part_of(parameters.values(), run), first);
        if (optimizer == nullptr)
            continue;
        for (const auto& [name, state] : optimizer->state())
            if (state.numel() == parameters.values().numel() && state.dim() == 1)
                holders->broadcast(part_of(state, run), first);
    }
    if (optimizer != nullptr)
        optimizer->restored();
}

}  // namespace hetseq
