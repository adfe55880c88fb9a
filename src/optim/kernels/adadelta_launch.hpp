#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "adadelta_loop.hpp"

namespace hetseq::detail {

/// Memory of a GPU, as in `AdadeltaTensors`.
template <class T>
struct AdadeltaArrays {
    T* values = nullptr;
    const T* gradients = nullptr;
    T* square_avg = nullptr;
    T* acc_delta = nullptr;
    std::int64_t count = 0;
    const float* closed = nullptr;  // of the gate; null: none
};

/// Puts the kernel into `stream`: for float and double.
template <class T>
void launch_adadelta(const AdadeltaArrays<T>& arrays,
                     const AdadeltaStep& step,
                     cudaStream_t stream);

}  // namespace hetseq::detail
