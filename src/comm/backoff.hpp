#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace hetseq {

/// Waits between two tests of something that is not ready yet. Most waits are short, so the first
/// tests follow at once. The next ones follow after yielding the core. Then come sleeps that double
/// up to a limit, so that waiting ranks leave a shared core to those that compute.
class Backoff {
public:
    struct Options {
        int eager_tests = 64;
        std::chrono::microseconds first_sleep{20};
        std::chrono::microseconds longest_sleep{200};
    };

    explicit Backoff(const Options& options) noexcept
        : options_{options}, sleep_{options.first_sleep} {}

    void pause() {
        constexpr int immediate_tests = 16;
        ++tests_;
        if (tests_ > options_.eager_tests) {
            std::this_thread::sleep_for(sleep_);
            sleep_ = std::min(2 * sleep_, options_.longest_sleep);
        } else if (tests_ > immediate_tests) {
            std::this_thread::yield();
        }
    }

    /// Something moved: start over.
    void reset() noexcept {
        tests_ = 0;
        sleep_ = options_.first_sleep;
    }

    /// True when the last `pause` slept.
    bool slept() const noexcept { return tests_ > options_.eager_tests; }

private:
    Options options_;
    int tests_ = 0;
    std::chrono::microseconds sleep_;
};

}  // namespace hetseq
