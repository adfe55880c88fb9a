#pragma once

#include <chrono>

namespace hetseq {

/// A clock that is never set back [s].
inline double monotonic_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace hetseq
