#pragma once

#include <ATen/core/Tensor.h>

#include "hetseq/model/dropout.hpp"

namespace hetseq {

/// Dropout as `counter_dropout`, whose mask is a pure function of (key, sample id, the element's
/// coordinates behind the sample) and of no size: where any dimension of `x` is padded further, the
/// elements that were there keep their masks. Without a derivative.
///
/// `x`: (n, ...), floating, of at most 11 dimensions; `sample_ids`: (n) int64 in [0, 2^48), on x's
/// device.
at::Tensor coordinate_dropout(const at::Tensor& x,
                              double p,
                              const DropoutKey& key,
                              const at::Tensor& sample_ids);

}  // namespace hetseq
