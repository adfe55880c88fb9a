#pragma once

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include "hetseq/model/dropout.hpp"

namespace hetseq::test {

/// The key of dropout in tests of kernels.
inline const DropoutKey key{.seed = 5, .update = 7, .layer = 3};

/// Normally distributed, fp64.
inline at::Tensor numbers(at::IntArrayRef sizes, int seed, double scale = 1) {
    at::manual_seed(seed);
    return at::randn(sizes, at::kDouble) * scale;
}

}  // namespace hetseq::test
