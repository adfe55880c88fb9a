#pragma once

#include <ATen/core/Tensor.h>

#include "step_gate_value.hpp"

namespace hetseq::detail {

/// `StepGate::set` on a GPU. Throws DeviceError in a build without CUDA.
void set_step_gate_cuda(const at::Tensor& problems,
                        const at::Tensor& norm,
                        double clip_norm,
                        at::Tensor& closed,
                        at::Tensor& clip_factor);

}  // namespace hetseq::detail
