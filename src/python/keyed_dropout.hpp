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

/// The forward that begins now draws by `key`. Its backward does so too, and what activation
/// checkpointing computes again in it, after whatever other forward was entered since. One forward
/// at a time in a process. `training` = false leaves torch's own randomness alone.
void enter_forward(const RandomnessKey& key, bool training);

/// No forward may draw by a key until the next `enter_forward`.
void leave_step() noexcept;

}  // namespace hetseq
