#pragma once

#include <memory>

#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

struct Parts;
struct PartOptions;

/// An optimizer of the kind that options name, for one parameter of one element: it tells what one
/// of a whole model will hold.
struct SmallOptimizer {
    std::unique_ptr<FlatParameters> parameters;
    std::unique_ptr<Optimizer> optimizer;
};

/// One in Python is made once, for its own parameters: it is taken to hold what Adam holds.
SmallOptimizer small_optimizer(const Parts& parts, const PartOptions& options);

}  // namespace hetseq
