#include "hetseq/util/no_cuda.hpp"

#include "counter_dropout.hpp"

namespace hetseq::detail {

void counter_dropout_cuda(const at::Tensor&,
                          const at::Tensor&,
                          const DropoutMask&,
                          const DropoutLayout&,
                          const at::Tensor&) {
    throw_no_cuda("dropout cannot run on a CUDA tensor");
}

void matrix_dropout_cuda(const at::Tensor&,
                         const at::Tensor&,
                         const DropoutMask&,
                         const DropoutMatrices&,
                         const at::Tensor&) {
    throw_no_cuda("dropout cannot run on a CUDA tensor");
}

void token_dropout_cuda(const at::Tensor&,
                        const at::Tensor&,
                        const DropoutMask&,
                        const at::Tensor&,
                        const at::Tensor&) {
    throw_no_cuda("dropout cannot run on a CUDA tensor");
}

}  // namespace hetseq::detail
