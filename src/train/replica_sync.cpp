#include "hetseq/train/replica_sync.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/view_as_real.h>

#include "hetseq/util/files/checksum.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

namespace {

std::uint64_t checksum_of(const at::Tensor& values, std::span<const NamedTensor> others) {
    Xxh64 hash;
    const auto add = [&](const at::Tensor& tensor) {
        const at::Tensor on_host = tensor.detach().to(at::kCPU).contiguous();
        hash.update(on_host.const_data_ptr(), on_host.nbytes());
    };
    add(values);
    for (const NamedTensor& other : others)
        add(other.tensor);
    return hash.digest();
}

// Of a type that can be subtracted and divided.
at::Tensor as_numbers(const at::Tensor& values) {
    const bool is_float = values.scalar_type() == at::kFloat || values.scalar_type() == at::kDouble;
    return is_float ? values
                    : (values.is_complex() ? at::view_as_real(values) : values).to(at::kDouble);
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

std::vector<NamedTensor> alike_beside(const FlatParameters& parameters, const Model& model) {
    std::vector<NamedTensor> others = model.common_tensors();
    std::erase_if(others, [&](const NamedTensor& other) {
        return !other.tensor.defined() || other.tensor.numel() == 0 ||
               other.tensor.is_alias_of(parameters.values());
    });
    return others;
}

void copy_replica(Communicator& communicator,
                  FlatParameters& parameters,
                  std::span<const NamedTensor> others,
                  Optimizer& optimizer) {
    const at::NoGradGuard no_grad;
    communicator.broadcast(parameters.values(), 0);
    for (const NamedTensor& other : others)
        broadcast(communicator, other.tensor);
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
           " (relative to max(1, |value|)" + (tensor.empty() ? "" : ", in '" + tensor + "'") + ")";
}

double largest_difference(const at::Tensor& own, const at::Tensor& other) {
    const at::Tensor a = as_numbers(own);
    const at::Tensor b = as_numbers(other);
    // Equal infinities, of masks, differ by no number.
    const at::Tensor is_equal = a.eq(b).logical_or_(a.isnan().logical_and_(b.isnan()));
    const at::Tensor difference = at::abs(a - b) / at::clamp_min(at::abs(b), 1);
    const at::Tensor largest = difference.masked_fill(is_equal, 0).max().to(at::kDouble);
    return at::nan_to_num(largest, INFINITY).item<double>();
}

ReplicaDrift compare_replicas(const HostComm& world,
                              Communicator& communicator,
                              const FlatParameters& parameters,
                              std::span<const NamedTensor> others,
                              const std::vector<std::string>& devices) {
    const at::NoGradGuard no_grad;
    const auto checksums =
        world.all_gather(static_cast<std::int64_t>(checksum_of(parameters.values(), others)));
    ReplicaDrift drift;
    std::map<std::string, std::int64_t> first;  // checksum by device
    for (std::size_t r = 0; r < devices.size(); ++r)
        if (first.emplace(devices[r], checksums[r]).first->second != checksums[r])
            drift.odd_ranks.push_back(static_cast<int>(r));
    const bool all_equal = std::all_of(
        checksums.begin(), checksums.end(), [&](std::int64_t c) { return c == checksums[0]; });
    if (all_equal)
        return drift;
    std::vector<NamedTensor> tensors;
    for (const FlatParameters::Parameter& parameter : parameters.parameters())
        tensors.push_back({parameter.name, parameter.tensor.detach()});
    tensors.insert(tensors.end(), others.begin(), others.end());
    std::vector<double> differences;
    for (const NamedTensor& own : tensors) {
        const at::Tensor of_first = own.tensor.clone();
        broadcast(communicator, of_first);
        differences.push_back(largest_difference(own.tensor, of_first));
    }
    world.all_reduce(std::span{differences}, ReduceOp::max);
    const auto largest = std::max_element(differences.begin(), differences.end());
    drift.largest_difference = *largest;
    drift.tensor = tensors[static_cast<std::size_t>(largest - differences.begin())].name;
    return drift;
}

}  // namespace hetseq
