#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "comm/backoff.hpp"

namespace hetseq {

/// Watches over one collective that is driven by tests: sleeps while nothing moves, and throws
/// CommError when the deadline passes or the communicator is being abandoned.
class Progress {
public:
    /// `peers` says whom this rank waits for, for the message. `abandoned` outlives this.
    Progress(std::chrono::milliseconds deadline,
             const std::atomic<bool>& abandoned,
             std::string peers);

    void moved() noexcept { backoff_.reset(); }
    void nothing_moved();

private:
    using Clock = std::chrono::steady_clock;
    std::chrono::milliseconds deadline_;
    Clock::time_point started_ = Clock::now();
    const std::atomic<bool>& abandoned_;
    std::string peers_;
    Backoff backoff_;
};

/// Advances `transfers` until they are complete.
template <class Transfers>
void complete(Transfers& transfers, Progress& progress) {
    while (!transfers.complete()) {
        if (transfers.advance())
            progress.moved();
        else
            progress.nothing_moved();
    }
}

}  // namespace hetseq
