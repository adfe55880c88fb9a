#pragma once

#include <functional>
#include <initializer_list>
#include <vector>

#include "transformer_ops.hpp"

namespace hetseq::detail {

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
