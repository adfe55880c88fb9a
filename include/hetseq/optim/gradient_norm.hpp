#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// sqrt of the summed squares of flat gradients in fp64. All memory is taken by the constructor, so
/// that a norm needs none when memory is full. The same for any number of threads.
class GradientNorm {
public:
    /// For tensors like `gradients` (n), contiguous.
    explicit GradientNorm(const at::Tensor& gradients);

    /// A scalar in fp64 on their device: the same tensor in each call. Does not wait for the
    /// device.
    const at::Tensor& of(const at::Tensor& gradients);
    /// `of` returned this tensor last.
    const at::Tensor& last() const noexcept { return norm_; }

private:
    std::vector<double> block_sums_;  // on a CPU
    at::Tensor sums_;                 // on a GPU
    at::Tensor norm_;
};

/// One norm (a scalar).
at::Tensor gradient_norm(const at::Tensor& gradients);

}  // namespace hetseq
