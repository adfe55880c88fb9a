#include "hetseq/optim/step_gate.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"

#include "kernels/step_gate.hpp"

namespace hetseq {

StepGate::StepGate(const at::TensorOptions& gradients, double clip_norm)
    : clip_norm_{clip_norm},
      closed_{at::zeros({}, gradients.dtype(at::kFloat))},
      factor_{at::ones({}, gradients)} {
    HETSEQ_ASSERT(clip_norm >= 0);
}

void StepGate::set(const at::Tensor& status, const at::Tensor& norm, double scale) {
    HETSEQ_ASSERT(status.is_contiguous() && status.numel() > 0 && norm.numel() == 1);
    scale_ = scale;
    detail::set_step_gate_cuda(status, norm, {clip_norm_, scale}, closed_, factor_);
}

void StepGate::prepare(at::Tensor gradients) const {
    HETSEQ_ASSERT(gradients.dim() == 1 && gradients.is_contiguous());
    if (clip_norm_ > 0 || scale_ != 1)
        detail::scale_cuda(gradients, factor_);
}

}  // namespace hetseq
