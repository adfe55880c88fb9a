#pragma once

#include <cstdint>
#include <filesystem>

namespace hetseq {

/// A number that rises whenever the kernel kills a process for want of memory, in this process's
/// control groups or anywhere on the host. `root` is where the kernel's /proc and /sys are found.
std::int64_t memory_kills(const std::filesystem::path& root = "/");

}  // namespace hetseq
