#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <sys/prctl.h>

namespace hetseq {

/// For a thread that looks for messages between sleeps. By default the kernel may prolong each by
/// 50 us, which is as long as the shortest ones.
inline void sleep_precisely() noexcept {
    prctl(PR_SET_TIMERSLACK, 1000UL);
}

/// Waits between two tests of something that is not ready yet. Most waits are short, so tests
/// follow one another at first, for about as long as the shortest sleep takes; then come sleeps
/// that double up to a limit, so that ranks sharing a core leave it to those that compute. A sleep
/// ends when its time is over, whoever has the core; a yield (sched_yield) to another job's process
/// would last for that one's time slice of 4 ms.
///
/// A test and its sleep cost some 20 us of processor time. A thread that waited for 2 s beside one
/// that computes would take 7 % of a core with sleeps of 200 us, so in a long wait the sleeps grow
/// with it: beyond 200 us each is at most a part (1/64) of the time waited so far, which is what a
/// late look may cost.
class Backoff {
public:
    using Sleep = std::chrono::microseconds;

    struct Options {
        Sleep eager{50};
        Sleep first_sleep{20};
        Sleep longest_sleep{200};
        Sleep longest_in_long_waits{2000};
        int part_of_wait = 64;
    };

    explicit Backoff(const Options& options) noexcept : options_{options} { reset(); }

    void pause() {
        if (const Sleep sleep = next_sleep(); sleep.count() > 0)
            std::this_thread::sleep_for(sleep);
    }

    /// For a caller that sleeps itself, as `pause` would; 0 at first.
    Sleep next_sleep() noexcept {
        const auto waited = std::chrono::duration_cast<Sleep>(Clock::now() - begin_);
        slept_ = waited > options_.eager;
        if (!slept_)
            return Sleep{0};
        return std::exchange(sleep_, std::min(2 * sleep_, longest_sleep_after(waited, options_)));
    }

    /// Something moved: start over.
    void reset() noexcept {
        begin_ = Clock::now();
        sleep_ = options_.first_sleep;
    }

    /// The longest sleep of a wait that has lasted for `waited`.
    static constexpr Sleep longest_sleep_after(Sleep waited, const Options& options) noexcept {
        return std::max(options.longest_sleep,
                        std::min(waited / options.part_of_wait, options.longest_in_long_waits));
    }

    /// True when the last `pause` slept, or was to.
    bool slept() const noexcept { return slept_; }

private:
    using Clock = std::chrono::steady_clock;

    Options options_;
    Clock::time_point begin_;
    Sleep sleep_{0};
    bool slept_ = false;
};

}  // namespace hetseq
