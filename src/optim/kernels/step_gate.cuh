// The gate of an optimizer's step on a GPU.
#pragma once

#include "step_gate_value.hpp"

namespace hetseq::detail {

/// For one thread.
template <class T>
__global__ void step_gate(StepGateInput input, float* closed, T* clip_factor) {
    set_step_gate(input, closed, clip_factor);
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
