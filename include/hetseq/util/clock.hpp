#pragma once

#include <chrono>
#include <ctime>

namespace hetseq {

/// A clock that is never set back [s].
inline double monotonic_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Processor time that all threads of this process have used [s].
inline double process_cpu_seconds() {
    std::timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace hetseq
