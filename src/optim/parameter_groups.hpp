#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq::detail {

/// Elements that an optimizer treats alike.
struct Stretch {
    std::int64_t offset = 0;
    std::int64_t numel = 0;

    /// The view of `flat`, which is laid out like the parameters.
    at::Tensor of(const at::Tensor& flat) const { return flat.narrow(0, offset, numel); }
};

/// Stretches with one weight decay and one factor of the learning rate.
struct ParameterGroup {
    double weight_decay = 0;
    double learning_rate_factor = 1;
    std::vector<Stretch> stretches;

    std::vector<at::Tensor> of(const at::Tensor& flat) const {
        std::vector<at::Tensor> views;
        views.reserve(stretches.size());
        for (const Stretch& stretch : stretches)
            views.push_back(stretch.of(flat));
        return views;
    }
};

/// The groups of all elements, in the order of their first ones. Neighbours that are treated
/// alike are one stretch: a GPU launches a kernel for each stretch, or for some of them.
inline std::vector<ParameterGroup> parameter_groups(const FlatParameters& parameters,
                                                    double weight_decay) {
    std::vector<ParameterGroup> all;
    for (const auto& segment : parameters.segments()) {
        const double decay = segment.decays ? weight_decay : 0;
        auto found = std::find_if(all.begin(), all.end(), [&](const ParameterGroup& group) {
            return group.weight_decay == decay &&
                   group.learning_rate_factor == segment.learning_rate_factor;
        });
        if (found == all.end())
            found = all.insert(all.end(), {decay, segment.learning_rate_factor, {}});
        std::vector<Stretch>& stretches = found->stretches;
        if (!stretches.empty() &&
            stretches.back().offset + stretches.back().numel == segment.offset)
            stretches.back().numel += segment.numel;
        else
            stretches.push_back({segment.offset, segment.numel});
    }
    return all;
}

}  // namespace hetseq::detail
