#pragma once

#include <c10/core/Device.h>

namespace hetseq {

/// Gives what LibTorch keeps of the GPUs' memory without using it back to them; CUDA's libraries
/// take theirs from there. Has no effect in a build without CUDA.
void release_cached_memory();

/// What all processes have taken of a GPU's memory [MiB]. This and the following are 0 in a build
/// without CUDA.
double used_device_memory_mb(at::Device device);

/// The most that this process's tensors have taken of a GPU's memory since `reset` [MiB].
double peak_device_memory_mb(at::Device device);
void reset_peak_device_memory(at::Device device);

}  // namespace hetseq
