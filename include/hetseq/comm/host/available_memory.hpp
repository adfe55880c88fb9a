#pragma once

#include <cstdint>
#include <filesystem>

namespace hetseq {

/// What processes can still take of the host's memory [MiB], as the kernel reckons it
/// (MemAvailable), and no more than the least limit of this process's control groups. `root` is
/// where the kernel's /proc and /sys are found ("/" but for tests).
std::int64_t available_memory_mb(const std::filesystem::path& root = "/");

}  // namespace hetseq
