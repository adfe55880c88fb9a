// Without LibTorch's headers: nvcc compiles it for many architectures, and the host for itself.
#pragma once

#include <cmath>
#include <cstdint>

#include "hetseq/util/host_device.hpp"

namespace hetseq::detail {

/// Memory of the host or of a GPU, as in `StepGate`.
struct StepGateInput {
    const double* problems = nullptr;
    std::int64_t count = 0;
    const double* norm = nullptr;
    double clip_norm = 0;
};

/// What `StepGate::set` writes.
template <class T>
HETSEQ_HOST_DEVICE void set_step_gate(const StepGateInput& input, float* closed, T* clip_factor) {
    const double norm = *input.norm;
    bool is_closed = !std::isfinite(norm);
    for (std::int64_t i = 0; i < input.count; ++i)
        is_closed = is_closed || input.problems[i] > 0;
    *closed = is_closed ? 1.0F : 0.0F;
    const bool clips = input.clip_norm > 0 && norm > input.clip_norm;
    *clip_factor = static_cast<T>(clips ? input.clip_norm / norm : 1.0);
}

}  // namespace hetseq::detail
