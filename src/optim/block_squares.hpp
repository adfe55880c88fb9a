#pragma once

#include <span>

#include <ATen/core/Tensor.h>

#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq::detail {

/// squares[b] = the summed squares of block b of `x` (n) in fp64: `x` is contiguous, on the CPU,
/// fp32 or fp64. The same for any number of threads.
void block_squares(const at::Tensor& x,
                   std::span<const FlatParameters::Block> blocks,
                   double* squares);

/// sqrt of the sum, added in order.
double norm_of(std::span<const double> squares);

}  // namespace hetseq::detail
