#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq::detail {

/// The views of `flat` (laid out like the parameters) on the segments that decay, or on those that
/// don't.
inline std::vector<at::Tensor> segment_views(const FlatParameters& parameters,
                                             const at::Tensor& flat,
                                             bool decays) {
    std::vector<at::Tensor> views;
    for (const auto& segment : parameters.segments())
        if (segment.decays == decays)
            views.push_back(flat.narrow(0, segment.offset, segment.numel));
    return views;
}

}  // namespace hetseq::detail
