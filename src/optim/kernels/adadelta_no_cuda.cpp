#include "hetseq/util/no_cuda.hpp"

#include "adadelta.hpp"

namespace hetseq::detail {

void adadelta_cuda(const AdadeltaTensors&, const at::Tensor&, const AdadeltaStep&) {
    throw_no_cuda("Adadelta cannot run on CUDA tensors");
}

}  // namespace hetseq::detail
