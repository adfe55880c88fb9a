#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace hetseq {

/// Waits between two tests of something that is not ready yet. Most waits are short, so tests
/// follow one another at first, for about as long as the shortest sleep takes; then come sleeps
/// that double up to a limit, so that ranks sharing a core leave it to those that compute. A sleep
/// ends when its time is over, whoever has the core; a yield (sched_yield) to another job's process
/// would last for that one's time slice of 4 ms.
class Backoff {
public:
    struct Options {
        std::chrono::microseconds eager{50};
        std::chrono::microseconds first_sleep{20};
        std::chrono::microseconds longest_sleep{200};
    };

    explicit Backoff(const Options& options) noexcept : options_{options} { reset(); }

    void pause() {
        slept_ = Clock::now() - begin_ > options_.eager;
        if (!slept_)
            return;
        std::this_thread::sleep_for(sleep_);
        sleep_ = std::min(2 * sleep_, options_.longest_sleep);
    }

    /// Something moved: start over.
    void reset() noexcept {
        begin_ = Clock::now();
        sleep_ = options_.first_sleep;
    }

    /// True when the last `pause` slept.
    bool slept() const noexcept { return slept_; }

private:
    using Clock = std::chrono::steady_clock;

    Options options_;
    Clock::time_point begin_;
    std::chrono::microseconds sleep_{0};
    bool slept_ = false;
};

}  // namespace hetseq
