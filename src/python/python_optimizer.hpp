#pragma once

#include <memory>

#include "hetseq/optim/optimizer.hpp"
#include "hetseq/task/part_options.hpp"

namespace hetseq {

/// The optimizer that the task's Python makes. Its state's tensors have a name for each parameter,
/// "exp_avg/encoder.weight"; "stepped" says whether it has made a step, before which PyTorch's
/// optimizers have no state.
std::unique_ptr<Optimizer> make_python_optimizer(FlatParameters& parameters,
                                                 const PartOptions& options);

}  // namespace hetseq
