#include "hetseq/train/replica_sync.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

std::uint64_t checksum_of(const at::Tensor& values) {
    const at::Tensor on_host = values.to(at::kCPU).contiguous();
    Xxh64 hash;
    hash.update(on_host.const_data_ptr(), on_host.nbytes());
    return hash.digest();
}

// Gives all ranks rank 0's values of a tensor of any type, on any device. All ranks take the same
// way: where some compute on GPUs and some on CPUs, a tensor's device does not tell which.
void broadcast(Communicator& communicator, const at::Tensor& tensor) {
    const at::Tensor values = tensor.detach().to(communicator.device()).contiguous();
    communicator.broadcast(values, 0);
    if (!values.is_alias_of(tensor))
        tensor.copy_(values);
}

}  // namespace

void share_model(Communicator& communicator, FlatParameters& parameters, const Model& model) {
    const at::NoGradGuard no_grad;
    communicator.broadcast(parameters.values(), 0);
    std::vector<at::Tensor> others = model.buffers();
    for (const NamedTensor& stored : model.stored_tensors())
        others.push_back(stored.tensor);
    // By object: whether two of them share memory depends on the device.
    std::set<const void*> known;
    for (const at::Tensor& tensor : others)
        if (tensor.defined() && tensor.numel() > 0 && !tensor.is_alias_of(parameters.values()) &&
            known.insert(tensor.unsafeGetTensorImpl()).second)
            broadcast(communicator, tensor);
}

void copy_replica(Communicator& communicator, FlatParameters& parameters, Optimizer& optimizer) {
    const at::NoGradGuard no_grad;
    communicator.broadcast(parameters.values(), 0);
    if (!parameters.state_ranges().empty())
        return;  // each part of the state is one rank's
    for (const auto& [name, tensor] : optimizer.state())
        broadcast(communicator, tensor);
    optimizer.restored();
}

bool ReplicaDrift::is_within(double tolerance) const {
    return odd_ranks.empty() && largest_difference <= tolerance;
}

std::string ReplicaDrift::text() const {
    std::string ranks;
    for (const int rank : odd_ranks)
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    return (ranks.empty()
                ? std::string("unlike devices")
                : "those of rank " + ranks + " differ from those of ranks on like devices") +
           ", they differ by up to " + format_number(largest_difference) +
           " (relative to max(1, |parameter|))";
}

double largest_difference(const at::Tensor& own, const at::Tensor& other) {
    const at::Tensor difference = at::abs(own - other) / at::clamp_min(at::abs(other), 1);
    return at::nan_to_num(difference.max().to(at::kDouble), INFINITY).item<double>();
}

ReplicaDrift compare_replicas(const HostComm& world,
                              Communicator& communicator,
                              const FlatParameters& parameters,
                              const std::vector<std::string>& devices) {
    const auto checksums =
        world.all_gather(static_cast<std::int64_t>(checksum_of(parameters.values())));
    ReplicaDrift drift;
    std::map<std::string, std::int64_t> first;  // checksum by device
    for (std::size_t r = 0; r < devices.size(); ++r)
        if (first.emplace(devices[r], checksums[r]).first->second != checksums[r])
            drift.odd_ranks.push_back(static_cast<int>(r));
    const bool all_equal = std::all_of(
        checksums.begin(), checksums.end(), [&](std::int64_t c) { return c == checksums[0]; });
    if (all_equal)
        return drift;
    const at::Tensor others = parameters.values().clone();
    communicator.broadcast(others, 0);
    drift.largest_difference =
        world.all_reduce(largest_difference(parameters.values(), others), ReduceOp::max);
    return drift;
}

}  // namespace hetseq
