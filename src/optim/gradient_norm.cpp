#include "hetseq/optim/gradient_norm.hpp"

#include <ATen/ATen.h>

#include "hetseq/util/error.hpp"

#include "block_norm.hpp"
#include "kernels/gradient_norm.hpp"

namespace hetseq {

GradientNorm::GradientNorm(const at::Tensor& gradients)
    : norm_{at::zeros({}, gradients.options().dtype(at::kDouble))} {
    if (gradients.is_cuda())
        sums_ = at::empty({detail::gradient_norm_sums(gradients.numel())}, norm_.options());
    else
        block_sums_.resize(detail::norm_blocks(gradients.numel()));
}

const at::Tensor& GradientNorm::of(const at::Tensor& gradients) {
    HETSEQ_ASSERT(gradients.dim() == 1 && gradients.is_contiguous());
    if (gradients.is_cuda())
        detail::gradient_norm_cuda(gradients, sums_, norm_);
    else
        *norm_.mutable_data_ptr<double>() = detail::block_norm(gradients, block_sums_);
    return norm_;
}

at::Tensor gradient_norm(const at::Tensor& gradients) {
    return GradientNorm{gradients}.of(gradients);
}

}  // namespace hetseq
