#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// What is computed again must be the same each time (dropout is, by `counter_dropout`), and own
/// all that it refers to but parameters.
using Recomputation = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// `compute(inputs)`. Backward keeps the inputs alone and computes the rest again, in the same
/// arithmetic (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). Its parameters
/// get their gradients when it is computed again: none of them may be used elsewhere. `trains`:
/// some of them have gradients.
std::vector<at::Tensor> recomputed(const std::vector<at::Tensor>& inputs,
                                   bool trains,
                                   const Recomputation& compute);

}  // namespace hetseq
