// The gate of an optimizer's step on a GPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "step_gate_input.hpp"

namespace hetseq::detail {

/// Writes what `StepGate` holds; for one thread.
template <class T>
__global__ void step_gate(StepGateInput input, float* closed, T* factor) {
    const GradientLimits limits = input.limits;
    const double norm = *input.norm / limits.scale;
    bool is_closed = !std::isfinite(norm) || input.status[0] > 0;
    for (std::int64_t i = 0; i < input.count; ++i)
        is_closed = is_closed || !std::isfinite(input.status[i]);
    *closed = is_closed ? 1.0F : 0.0F;
    const bool clips = limits.clip_norm > 0 && norm > limits.clip_norm;
    *factor = static_cast<T>((clips ? limits.clip_norm / norm : 1.0) / limits.scale);
}

inline constexpr unsigned scale_block_threads = 256;

inline unsigned scale_blocks(std::int64_t count) {
    return static_cast<unsigned>((count + scale_block_threads - 1) / scale_block_threads);
}

/// One thread per element; no memory is touched where the factor is 1.
template <class T>
__global__ void scale(T* values, std::int64_t count, const T* factor) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const T by = *factor;
    if (i < count && by != T{1})
        values[i] *= by;
}

}  // namespace hetseq::detail
