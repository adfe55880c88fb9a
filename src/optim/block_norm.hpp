#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hetseq::detail {

/// How many sums `block_norm` of `numel` elements makes first.
std::size_t norm_blocks(std::int64_t numel);

/// sqrt of the summed squares of `x` (n) in fp64: contiguous, on the CPU, fp32 or fp64. The same
/// for any number of threads. `block_sums` is scratch, and grows where it is shorter than
/// `norm_blocks(n)`.
double block_norm(const at::Tensor& x, std::vector<double>& block_sums);

}  // namespace hetseq::detail
