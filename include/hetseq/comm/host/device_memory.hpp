#pragma once

namespace hetseq {

/// Gives what LibTorch keeps of the GPUs' memory without using it back to them; CUDA's libraries
/// take theirs from there. Has no effect in a build without CUDA.
void release_cached_memory();

}  // namespace hetseq
