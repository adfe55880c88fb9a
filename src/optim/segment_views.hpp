#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq::detail {

/// What an optimizer does alike to some segments.
struct SegmentKind {
    bool decays = true;
    double learning_rate_factor = 1;

    bool has(const FlatParameters::Segment& segment) const {
        return segment.decays == decays && segment.learning_rate_factor == learning_rate_factor;
    }
};

/// The kinds that the segments of `parameters` have, in the order of their first ones.
inline std::vector<SegmentKind> segment_kinds(const FlatParameters& parameters) {
    std::vector<SegmentKind> kinds;
    for (const auto& segment : parameters.segments()) {
        bool is_known = false;
        for (const SegmentKind& kind : kinds)
            is_known = is_known || kind.has(segment);
        if (!is_known)
            kinds.push_back({segment.decays, segment.learning_rate_factor});
    }
    return kinds;
}

/// The views of `flat` (laid out like the parameters) on the segments of one kind.
inline std::vector<at::Tensor> segment_views(const FlatParameters& parameters,
                                             const at::Tensor& flat,
                                             const SegmentKind& kind) {
    std::vector<at::Tensor> views;
    for (const auto& segment : parameters.segments())
        if (kind.has(segment))
            views.push_back(flat.narrow(0, segment.offset, segment.numel));
    return views;
}

}  // namespace hetseq::detail
