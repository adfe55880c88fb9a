// The gate of an optimizer's step on a GPU.
#pragma once

#include "step_gate_value.hpp"

namespace hetseq::detail {

/// For one thread.
template <class T>
__global__ void step_gate(StepGateInput input, float* closed, T* clip_factor) {
    set_step_gate(input, closed, clip_factor);
}

}  // namespace hetseq::detail
