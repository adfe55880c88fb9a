#include "hetseq/optim/step_gate.hpp"

#include <ATen/Dispatch.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "hetseq/util/error.hpp"

#include "kernels/step_gate.hpp"

namespace hetseq {

StepGate::StepGate(const at::TensorOptions& gradients, double clip_norm)
    : clip_norm_{clip_norm},
      closed_{at::zeros({}, gradients.dtype(at::kFloat))},
      clip_factor_{at::ones({}, gradients)} {
    HETSEQ_ASSERT(clip_norm >= 0);
}

void StepGate::set(const at::Tensor& problems, const at::Tensor& norm) {
    HETSEQ_ASSERT(problems.is_contiguous() && norm.numel() == 1);
    if (closed_.is_cuda()) {
        detail::set_step_gate_cuda(problems, norm, clip_norm_, closed_, clip_factor_);
        return;
    }
    AT_DISPATCH_FLOATING_TYPES(clip_factor_.scalar_type(), "step_gate", [&] {
        detail::set_step_gate(detail::StepGateInput{problems.const_data_ptr<double>(),
                                                    problems.numel(),
                                                    norm.const_data_ptr<double>(),
                                                    clip_norm_},
                              closed_.mutable_data_ptr<float>(),
                              clip_factor_.mutable_data_ptr<scalar_t>());
    });
}

void StepGate::clip(at::Tensor gradients) const {
    HETSEQ_ASSERT(gradients.dim() == 1 && gradients.is_contiguous());
    if (clip_norm_ == 0)
        return;
    if (gradients.is_cuda())
        detail::scale_cuda(gradients, clip_factor_);
    else if (clip_factor_.item<double>() != 1)
        gradients.mul_(clip_factor_);
}

}  // namespace hetseq
