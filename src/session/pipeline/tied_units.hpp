#pragma once

#include <vector>

#include <c10/core/ScalarType.h>

#include "hetseq/balance/pipeline/chain_problem.hpp"

namespace hetseq {

class Model;

/// The trained parameters that several units of a model's chain read, by these units. `gradients`:
/// their type. `filled`: by unit of the chain, the part of their gradients that is not zero.
std::vector<TiedUnits> tied_units(const Model& model,
                                  at::ScalarType gradients,
                                  const std::vector<double>& filled);

}  // namespace hetseq
