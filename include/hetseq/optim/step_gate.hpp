#pragma once

#include <ATen/core/Tensor.h>

namespace hetseq {

/// Decides on a GPU whether an optimizer takes its step, before the host knows it.
class StepGate {
public:
    /// For gradients of this type and device. `clip_norm`: of their 2-norm; 0: no clipping. Takes
    /// all memory that is needed.
    StepGate(const at::TensorOptions& gradients, double clip_norm);

    /// Closes the gate where the first of `status` (n, fp64) is above 0, or where any of it or
    /// `norm` (a scalar, fp64) is not finite, and opens it otherwise. Both are on the gradients'
    /// device, which the host does not wait for.
    /// `norm` is that of the gradients as they are, `scale` (a power of two) times the loss's.
    void set(const at::Tensor& status, const at::Tensor& norm, double scale = 1);

    /// A scalar in fp32 on the device, the same tensor in each call: 1 where the gate is closed,
    /// otherwise 0.
    const at::Tensor& closed() const noexcept { return closed_; }
    /// Takes the scale of the last `set` from its `gradients` (n), contiguous, and clips them, so
    /// that their norm is at most `clip_norm`. Reads and writes them only where that changes them.
    void prepare(at::Tensor gradients) const;

private:
    double clip_norm_;
    double scale_ = 1;
    at::Tensor closed_;
    at::Tensor factor_;  // a scalar of the gradients' type
};

}  // namespace hetseq
