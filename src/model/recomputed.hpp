#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <vector>

#include <ATen/core/Tensor.h>

#include "transformer_ops.hpp"

namespace hetseq::detail {

/// What is computed again must be the same each time and own what it refers to, but for parameters.
using Recomputation = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// `compute(inputs)`. Backward keeps the inputs alone and computes the rest again, in the same
/// arithmetic (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). Its parameters
/// get their gradients when it is computed again. `trains`: some of them have any.
std::vector<at::Tensor> recomputed(const std::vector<at::Tensor>& inputs,
                                   bool trains,
                                   const Recomputation& compute);

/// Whether any weight or bias has a gradient.
bool any_trains(std::initializer_list<Affine> parameters);

/// A layer of a Transformer.
using LayerComputation = std::function<Rows(const std::vector<Rows>&, ForwardPass&)>;

/// `layer(inputs, pass)`, `recomputed` where `again`. Dropouts have the same numbers each time.
Rows run_layer(ForwardPass& pass,
               const std::vector<Rows>& inputs,
               bool again,
               bool trains,
               const LayerComputation& layer);

}  // namespace hetseq::detail
