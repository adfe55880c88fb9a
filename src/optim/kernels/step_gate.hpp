#pragma once

#include <ATen/core/Tensor.h>

#include "step_gate_input.hpp"

namespace hetseq::detail {

/// `StepGate::set` on a GPU. Throws DeviceError in a build without CUDA.
void set_step_gate_cuda(const at::Tensor& status,
                        const at::Tensor& norm,
                        const GradientLimits& limits,
                        at::Tensor& closed,
                        at::Tensor& factor);

/// Multiplies `values` (n), contiguous, by `factor`, a scalar of their type on their GPU. Throws as
/// above.
void scale_cuda(at::Tensor& values, const at::Tensor& factor);

}  // namespace hetseq::detail
