#include "hetseq/util/error.hpp"

#include "step_gate.hpp"

namespace hetseq::detail {

void set_step_gate_cuda(const at::Tensor&, const at::Tensor&, double, at::Tensor&, at::Tensor&) {
    throw DeviceError("an optimizer's step on CUDA tensors cannot be gated",
                      "this hetseq was built without CUDA",
                      "build the cuda preset");
}

}  // namespace hetseq::detail
