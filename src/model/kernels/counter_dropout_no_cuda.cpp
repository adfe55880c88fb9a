#include "hetseq/util/error.hpp"

#include "counter_dropout.hpp"

namespace hetseq::detail {

namespace {

[[noreturn]] void refuse_cuda_dropout() {
    throw DeviceError("dropout cannot run on a CUDA tensor",
                      "this hetseq was built without CUDA",
                      "build the cuda preset");
}

}  // namespace

void counter_dropout_cuda(const at::Tensor&,
                          const at::Tensor&,
                          const DropoutMask&,
                          const DropoutLayout&,
                          const at::Tensor&) {
    refuse_cuda_dropout();
}

void token_dropout_cuda(const at::Tensor&,
                        const at::Tensor&,
                        const DropoutMask&,
                        const at::Tensor&,
                        const at::Tensor&) {
    refuse_cuda_dropout();
}

}  // namespace hetseq::detail
