#include "hetseq/util/error.hpp"

#include "gradient_norm.hpp"

namespace hetseq::detail {

namespace {

[[noreturn]] void refuse() {
    throw DeviceError("no norm of CUDA tensors can be taken",
                      "this hetseq was built without CUDA",
                      "build the cuda preset");
}

}  // namespace

std::int64_t gradient_norm_sums(std::int64_t) {
    refuse();
}

void gradient_norm_cuda(const at::Tensor&, at::Tensor&, at::Tensor&) {
    refuse();
}

}  // namespace hetseq::detail
