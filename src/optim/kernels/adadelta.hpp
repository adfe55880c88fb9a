#pragma once

#include <ATen/core/Tensor.h>

#include "adadelta_loop.hpp"

namespace hetseq::detail {

/// Flat tensors (n) of one dtype and device, contiguous; all but the gradient are updated.
struct AdadeltaTensors {
    at::Tensor values, gradients, square_avg, acc_delta;
};

void adadelta_cpu(const AdadeltaTensors& tensors, const AdadeltaStep& step);
/// Throws DeviceError in a build without CUDA.
void adadelta_cuda(const AdadeltaTensors& tensors, const AdadeltaStep& step);

}  // namespace hetseq::detail
