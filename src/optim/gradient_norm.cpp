#include "kernels/gradient_norm.hpp"

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"

#include "block_norm.hpp"

#include "hetseq/optim/optimizer.hpp"

namespace hetseq {

at::Tensor gradient_norm(const at::Tensor& gradients) {
    HETSEQ_ASSERT(gradients.dim() == 1 && gradients.is_contiguous());
    if (gradients.is_cuda())
        return detail::gradient_norm_cuda(gradients);
    std::vector<double> block_sums;
    return at::scalar_tensor(detail::block_norm(gradients, block_sums), at::kDouble);
}

}  // namespace hetseq
