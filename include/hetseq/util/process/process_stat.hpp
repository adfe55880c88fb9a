#pragma once

#include <cstdint>
#include <optional>

namespace hetseq {

struct ProcessStat {
    char state = '?';        // proc(5): 'R', 'S', 'Z', ...
    std::int64_t start = 0;  // clock ticks since the host's boot

    bool has_ended() const noexcept { return state == 'Z' || state == 'X'; }
};

/// Of a process on this host, by /proc; nothing where there is none, or /proc does not show it.
std::optional<ProcessStat> process_stat(std::int64_t process);

}  // namespace hetseq
