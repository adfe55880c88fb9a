#include "hetseq/util/no_cuda.hpp"

#include "step_gate.hpp"

namespace hetseq::detail {

void set_step_gate_cuda(
    const at::Tensor&, const at::Tensor&, const GradientLimits&, at::Tensor&, at::Tensor&) {
    throw_no_cuda("an optimizer's step on CUDA tensors cannot be gated");
}

void scale_cuda(at::Tensor&, const at::Tensor&) {
    throw_no_cuda("an optimizer's step on CUDA tensors cannot be gated");
}

}  // namespace hetseq::detail
