// Adadelta on a GPU, without LibTorch's headers: nvcc compiles it for many architectures, and the
// tests compile it for the CPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "adadelta_loop.hpp"

namespace hetseq::detail {

inline constexpr unsigned adadelta_block_threads = 256;

inline unsigned adadelta_blocks(std::int64_t count) {
    return static_cast<unsigned>((count + adadelta_block_threads - 1) / adadelta_block_threads);
}

/// `AdadeltaStep` in the type of the tensors.
template <class T>
struct AdadeltaFactors {
    T lr, rho, rest, eps, decay;  // rest: 1 - rho

    explicit AdadeltaFactors(const AdadeltaStep& step)
        : lr(static_cast<T>(step.lr)),
          rho(static_cast<T>(step.rho)),
          rest(static_cast<T>(1 - step.rho)),
          eps(static_cast<T>(step.eps)),
          decay(static_cast<T>(step.weight_decay)) {}
};

/// One thread per element. `closed` as in `adadelta_cuda`; null: none.
template <class T>
__global__ void adadelta(T* __restrict__ value,
                         const T* __restrict__ gradient,
                         T* __restrict__ square_avg,
                         T* __restrict__ acc_delta,
                         std::int64_t count,
                         const float* closed,
                         AdadeltaFactors<T> factor) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count || (closed != nullptr && *closed > 0))
        return;
    const T before = value[i], old_average = square_avg[i], old_delta = acc_delta[i];
    const T g = gradient[i] + factor.decay * before;
    const T average = factor.rho * old_average + factor.rest * g * g;
    const T delta = std::sqrt(old_delta + factor.eps) / std::sqrt(average + factor.eps) * g;
    square_avg[i] = average;
    acc_delta[i] = factor.rho * old_delta + factor.rest * delta * delta;
    value[i] = before - factor.lr * delta;
}

}  // namespace hetseq::detail
