#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "transformer_ops.hpp"

namespace hetseq::detail {

/// Sums over M rows; scalars.
struct SmoothedCrossEntropy {
    at::Tensor loss;     // with graph
    at::Tensor nll;      // sum of -log p(label)
    at::Tensor correct;  // how many labels are the likeliest class; undefined unless asked for
};

/// Cross entropy with label smoothing under softmax(x table^T), x (M, H), table (V, H), labels (M)
/// int64: (1 - smoothing) * -log p(label) + smoothing * mean over classes of -log p (Szegedy et al.
/// 2016). Logits exist for some rows at a time, so that memory does not grow with M * V. Where a
/// gradient is needed it is computed at once, and backward only scales it.
SmoothedCrossEntropy smoothed_cross_entropy(const at::Tensor& x,
                                            const at::Tensor& table,
                                            const at::Tensor& labels,
                                            double smoothing,
                                            CountCorrect count_correct);

/// What other devices and types than fp32 and fp64 on a CPU take for some rows: the sums of loss,
/// nll and correct, (3) fp64 on the device of `logits` (M, V). They are computed in fp64 where the
/// logits are, otherwise in fp32. Where `has_gradient`, logits become the loss's gradient.
at::Tensor reduce_logits_anywhere(at::Tensor& logits,
                                  const at::Tensor& labels,
                                  double smoothing,
                                  bool has_gradient);

}  // namespace hetseq::detail
