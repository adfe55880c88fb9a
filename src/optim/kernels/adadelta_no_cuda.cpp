#include "hetseq/util/error.hpp"

#include "adadelta.hpp"

namespace hetseq::detail {

void adadelta_cuda(const AdadeltaTensors&, const at::Tensor&, const AdadeltaStep&) {
    throw DeviceError("Adadelta cannot run on CUDA tensors",
                      "this hetseq was built without CUDA",
                      "build the cuda preset");
}

}  // namespace hetseq::detail
