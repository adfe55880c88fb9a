#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// What the random draws of a forward pass depend on, besides the module and the element.
struct RandomnessKey {
    std::uint64_t seed = 1;
    std::int64_t update = 0;
    at::Tensor sample_ids;  // (n) int64, on the device
};

/// A forward pass of the user's module begins. The key holds until the next forward pass or
/// `leave_step`, since backward may compute parts of the forward pass again.
void enter_forward(RandomnessKey key, bool is_training);
void leave_step() noexcept;

}  // namespace hetseq
