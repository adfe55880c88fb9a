#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "step_gate_input.hpp"

namespace hetseq::detail {

/// Puts the kernel into `stream`; all of it is memory of a GPU. For float and double.
template <class T>
void launch_step_gate(const StepGateInput& input, float* closed, T* factor, cudaStream_t stream);

/// Multiplies `values` by `factor`; as above.
template <class T>
void launch_scale(T* values, std::int64_t count, const T* factor, cudaStream_t stream);

}  // namespace hetseq::detail
