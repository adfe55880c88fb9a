#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace hetseq::detail {

/// How many sums `launch_sum_of_squares` makes of `count` elements.
unsigned sums_of_squares(std::int64_t count);

/// Puts the kernel into `stream`; all of it is memory of a GPU. For float, double, c10::Half and
/// c10::BFloat16.
template <class T>
void launch_sum_of_squares(const T* x, std::int64_t count, double* sums, cudaStream_t stream);

}  // namespace hetseq::detail
