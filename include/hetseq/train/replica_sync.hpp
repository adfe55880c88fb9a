#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/model/tensor_registry.hpp"

namespace hetseq {

class Communicator;
class FlatParameters;
class HostComm;
class Model;
class Optimizer;

/// Collective. Gives all ranks rank 0's model: `parameters`, which are those that are trained, and
/// what else it stores or keeps in buffers. On CPUs of different makes, initial values may differ
/// in their last bits.
void share_model(Communicator& communicator, FlatParameters& parameters, const Model& model);

/// What all ranks hold alike beside `parameters`: frozen parameters, and buffers that are stored
/// and of which no rank has its own.
std::vector<NamedTensor> alike_beside(const FlatParameters& parameters, const Model& model);

/// Collective. Copies rank 0's parameters, optimizer state and `others` (`alike_beside`) to all
/// ranks. On unlike devices, replicas differ in their last bits, since each device rounds in its
/// own way.
void copy_replica(Communicator& communicator,
                  FlatParameters& parameters,
                  std::span<const NamedTensor> others,
                  Optimizer& optimizer);

/// How far the ranks' models are apart.
struct ReplicaDrift {
    std::vector<int> odd_ranks = {};  // whose tensors differ from those of the lowest rank with a
                                      // like device, in any bit
    double largest_difference = 0;    // between any rank and rank 0, over max(1, |value|)
    std::string tensor = {};          // the name of one that differs so much; may be empty

    /// True if like devices agree in every bit, and unlike ones within `tolerance`.
    bool is_within(double tolerance) const;
    std::string text() const;
};

/// Between two tensors of one shape, over max(1, |other|); infinite where one alone is not finite,
/// or they are so in unlike ways.
double largest_difference(const at::Tensor& own, const at::Tensor& other);

/// Collective; the same on all ranks. `others`: see `alike_beside`. `devices`: what each rank
/// computes on, by rank. Ranks on like devices are compared by checksum; where devices are unlike,
/// values are compared with rank 0's.
ReplicaDrift compare_replicas(const HostComm& world,
                              Communicator& communicator,
                              const FlatParameters& parameters,
                              std::span<const NamedTensor> others,
                              const std::vector<std::string>& devices);

}  // namespace hetseq
