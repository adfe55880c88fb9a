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
    void set(const at::Tensor& status, const at::Tensor& norm);

    /// A scalar in fp32 on the device, the same tensor in each call: 1 where the gate is closed,
    /// otherwise 0.
    const at::Tensor& closed() const noexcept { return closed_; }
    /// Multiplies `gradients` (n), contiguous, so that their norm is at most `clip_norm`: those of
    /// the last `set`. Reads and writes them only where that changes them.
    void clip(at::Tensor gradients) const;

private:
    double clip_norm_;
    at::Tensor closed_;
    at::Tensor clip_factor_;  // a scalar of the gradients' type
};

}  // namespace hetseq
