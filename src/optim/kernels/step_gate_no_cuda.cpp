#include "hetseq/util/error.hpp"

#include "step_gate.hpp"

namespace hetseq::detail {

namespace {

[[noreturn]] void refuse_to_gate() {
    throw DeviceError("an optimizer's step on CUDA tensors cannot be gated",
                      "this hetseq was built without CUDA",
                      "build the cuda preset");
}

}  // namespace

void set_step_gate_cuda(const at::Tensor&, const at::Tensor&, double, at::Tensor&, at::Tensor&) {
    refuse_to_gate();
}

void scale_cuda(at::Tensor&, const at::Tensor&) {
    refuse_to_gate();
}

}  // namespace hetseq::detail
