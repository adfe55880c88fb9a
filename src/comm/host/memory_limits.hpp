#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hetseq {

/// A control group with a limit of memory.
struct MemoryLimit {
    std::string group;    // one name for all processes of a host, without blanks
    std::int64_t mb = 0;  // that its processes may take together [MiB]

    bool operator==(const MemoryLimit&) const = default;
};

/// Those of the control group of this process and of its ancestors, nearest first, of versions 1
/// and 2. `root` is where the kernel's /proc and /sys are found ("/" but for tests).
std::vector<MemoryLimit> memory_limits(const std::filesystem::path& root = "/");

/// The memory of a host's rank [MiB] if ranks divide evenly what they have together: the least of
/// its parts of the host's `host_mb` and of each of its limits. `limits` is by rank of the host.
std::int64_t divide_memory(std::int64_t host_mb,
                           const std::vector<std::vector<MemoryLimit>>& limits,
                           std::size_t rank);

}  // namespace hetseq
