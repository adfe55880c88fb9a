#include "normalised_loss.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full_like.h>

#include "hetseq/train/update_status.hpp"

namespace hetseq {

at::Tensor normalised_loss(const ForwardResult& result,
                           std::span<const double> weights,
                           UpdateStatus& status) {
    at::Tensor total;
    for (std::size_t j = 0; j < result.losses.size(); ++j) {
        if (weights[j] == 0)
            continue;
        const at::Tensor loss = result.losses[j] / weights[j];
        status.add_loss(j, loss);
        total = total.defined() ? total + loss : loss;
    }
    return total;
}

void backward_scaled(const at::Tensor& loss, double loss_scale) {
    if (loss_scale == 1)
        loss.backward();
    else
        loss.backward(at::full_like(loss, loss_scale));
}

}  // namespace hetseq
