#pragma once

#include <span>

#include "hetseq/model/model.hpp"

namespace hetseq {

class UpdateStatus;

/// sum_j S_j / W_j of one micro-batch, with graph; undefined when no term counts. `weights`: W_j of
/// the whole global batch, by loss term; a term with W_j = 0 drops out. Each term's part is added
/// to `status`.
at::Tensor normalised_loss(const ForwardResult& result,
                           std::span<const double> weights,
                           UpdateStatus& status);

/// Backward of `loss`, whose gradients are multiplied with `loss_scale`.
void backward_scaled(const at::Tensor& loss, double loss_scale);

}  // namespace hetseq
