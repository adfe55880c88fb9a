#include "hetseq/util/no_cuda.hpp"

#include "gradient_norm.hpp"

namespace hetseq::detail {

std::int64_t gradient_norm_sums(std::int64_t) {
    throw_no_cuda("no norm of CUDA tensors can be taken");
}

void sums_of_squares_cuda(const at::Tensor&, at::Tensor&) {
    throw_no_cuda("no norm of CUDA tensors can be taken");
}

}  // namespace hetseq::detail
