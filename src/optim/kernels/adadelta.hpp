#pragma once

#include <ATen/core/Tensor.h>

#include "adadelta_loop.hpp"

namespace hetseq::detail {

/// Flat tensors (n) of one dtype and device, contiguous; all but the gradient are updated.
struct AdadeltaTensors {
    at::Tensor values, gradients, square_avg, acc_delta;
};

/// `closed`: a scalar in fp32 on their device, which nothing is updated for where it is 1;
/// undefined: none.
void adadelta_cpu(const AdadeltaTensors& tensors,
                  const at::Tensor& closed,
                  const AdadeltaStep& step);
/// Throws DeviceError in a build without CUDA.
void adadelta_cuda(const AdadeltaTensors& tensors,
                   const at::Tensor& closed,
                   const AdadeltaStep& step);

}  // namespace hetseq::detail
