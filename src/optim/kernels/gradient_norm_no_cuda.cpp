#include "hetseq/util/error.hpp"

#include "gradient_norm.hpp"

namespace hetseq::detail {

at::Tensor gradient_norm_cuda(const at::Tensor&) {
    throw DeviceError("no norm of CUDA tensors can be taken",
                      "this hetseq was built without CUDA",
                      "build the cuda preset");
}

}  // namespace hetseq::detail
