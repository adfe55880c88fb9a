#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace hetseq {

/// What all random numbers of one forward of a user's module are a function of, beside the module's
/// path, the number of its call and the number of the draw within the call.
struct RandomnessKey {
    std::uint64_t seed = 1;   // of the run
    std::int64_t update = 0;  // in [0, 2^32)
    at::Tensor sample_ids;    // (n) int64 in [0, 2^48), on the device of the forward
};

/// From here until `leave_step` or the next call, `hetseq::mask` and `hetseq::uniform` draw by
/// `key`, in any thread: activation checkpointing computes a forward again inside backward, on a
/// GPU in autograd's own threads. One forward at a time in a process. `training` = false leaves
/// torch's own randomness alone.
void enter_forward(RandomnessKey key, bool training);

/// After the backward pass: nothing may draw by a key until the next `enter_forward`.
void leave_step() noexcept;

}  // namespace hetseq
