#include "hetseq/util/error.hpp"

#include "counter_dropout.hpp"

namespace hetseq::detail {

void counter_dropout_cuda(const at::Tensor&,
                          const at::Tensor&,
                          const DropoutMask&,
                          const DropoutLayout&,
                          const at::Tensor&) {
    throw DeviceError("dropout cannot run on a CUDA tensor",
                      "this hetseq was built without CUDA",
                      "build the cuda preset");
}

}  // namespace hetseq::detail
