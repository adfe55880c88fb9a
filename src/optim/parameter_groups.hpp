#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/optim/flat_parameters.hpp"

namespace hetseq::detail {

/// Elements whose state a rank holds, and that an optimizer treats alike.
struct Stretch {
    std::int64_t offset = 0;  // among the parameters
    std::int64_t numel = 0;
    std::int64_t state_offset = 0;  // in a tensor of the state

    /// The view of `flat`, which is laid out like the parameters.
    at::Tensor of(const at::Tensor& flat) const { return flat.narrow(0, offset, numel); }
    /// The view of a tensor of the state.
    at::Tensor of_state(const at::Tensor& state) const {
        return state.narrow(0, state_offset, numel);
    }
    bool is_followed_by(const Stretch& next) const {
        return offset + numel == next.offset && state_offset + numel == next.state_offset;
    }
};

/// The elements [offset, offset + numel) of the parameters whose state is held.
inline std::vector<Stretch> held_stretches(const FlatParameters& parameters,
                                           std::int64_t offset,
                                           std::int64_t numel) {
    std::vector<Stretch> stretches;
    for (const FlatParameters::Held& held : parameters.held()) {
        const std::int64_t begin = std::max(offset, held.offset);
        const std::int64_t end = std::min(offset + numel, held.offset + held.numel);
        if (begin < end)
            stretches.push_back({begin, end - begin, held.state_offset + begin - held.offset});
    }
    return stretches;
}

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
    std::vector<at::Tensor> of_state(const at::Tensor& state) const {
        std::vector<at::Tensor> views;
        views.reserve(stretches.size());
        for (const Stretch& stretch : stretches)
            views.push_back(stretch.of_state(state));
        return views;
    }
};

/// Gradients of a group. The parameters' flat ones may be others in each step.
class GroupGradients {
public:
    explicit GroupGradients(std::vector<Stretch> stretches) : stretches_{std::move(stretches)} {}

    /// Views of those that `parameters` have now.
    const std::vector<at::Tensor>& of(const FlatParameters& parameters) {
        const at::Tensor flat = parameters.gradients();
        if (flat.is_same(flat_))
            return views_;
        flat_ = flat;
        views_.clear();
        for (const Stretch& stretch : stretches_)
            views_.push_back(stretch.of(flat));
        return views_;
    }

private:
    std::vector<Stretch> stretches_;
    at::Tensor flat_;
    std::vector<at::Tensor> views_;
};

/// Appends `stretch`, or makes the last one longer: a GPU launches a kernel for each, or for some.
inline void append(std::vector<Stretch>& stretches, const Stretch& stretch) {
    if (!stretches.empty() && stretches.back().is_followed_by(stretch))
        stretches.back().numel += stretch.numel;
    else
        stretches.push_back(stretch);
}

/// The groups of all elements whose state is held, in the order of their first ones. Neighbours
/// that are treated alike are one stretch.
inline std::vector<ParameterGroup> parameter_groups(const FlatParameters& parameters,
                                                    double weight_decay) {
    std::vector<ParameterGroup> all;
    for (const auto& segment : parameters.segments()) {
        const auto held = held_stretches(parameters, segment.offset, segment.numel);
        if (held.empty())
            continue;
        const double decay = segment.decays ? weight_decay : 0;
        auto found = std::find_if(all.begin(), all.end(), [&](const ParameterGroup& group) {
            return group.weight_decay == decay &&
                   group.learning_rate_factor == segment.learning_rate_factor;
        });
        if (found == all.end())
            found = all.insert(all.end(), {decay, segment.learning_rate_factor, {}});
        for (const Stretch& stretch : held)
            append(found->stretches, stretch);
    }
    return all;
}

}  // namespace hetseq::detail
