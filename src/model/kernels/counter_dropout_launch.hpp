#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "dropout_grid.hpp"

namespace hetseq::detail {

/// Memory of a GPU, as in `counter_dropout_cuda` and `matrix_dropout_cuda`.
template <class T>
struct DropoutTensors {
    const T* x = nullptr;
    T* out = nullptr;
    const std::int64_t* sample_ids = nullptr;  // (samples)
    std::int64_t samples = 0;
};

/// Memory of a GPU, as in `token_dropout_cuda`.
template <class T>
struct TokenDropoutTensors {
    const T* x = nullptr;
    T* out = nullptr;
    const std::int64_t* sample_ids = nullptr;  // (rows)
    const std::int64_t* positions = nullptr;   // (rows)
};

/// Each puts its kernel into `stream`: for float, double, c10::Half and c10::BFloat16.
template <class T>
void launch_dropout(const DropoutTensors<T>& tensors,
                    const DropoutMask& mask,
                    const DropoutGrid& grid,
                    cudaStream_t stream);
template <class T>
void launch_matrix_dropout(const DropoutTensors<T>& tensors,
                           const DropoutMask& mask,
                           const MatrixGrid& grid,
                           cudaStream_t stream);
template <class T>
void launch_token_dropout(const TokenDropoutTensors<T>& tensors,
                          const DropoutMask& mask,
                          const TokenGrid& grid,
                          cudaStream_t stream);

}  // namespace hetseq::detail
