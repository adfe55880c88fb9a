#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <mutex>
#include <string>

namespace hetseq {

/// The phases of a rank's work. In `agreeing` and `reducing` the rank waits for others; in the
/// other phases it works by itself.
enum class Phase : std::uint8_t {
    starting,
    loading,
    agreeing,
    computing,
    reducing,
    optimizing,
    validating,
    saving,
    ending,
};
inline constexpr int phase_count = 9;

/// "starting", "loading" and so on. Async-signal-safe.
const char* to_string(Phase phase) noexcept;

/// The current phase of a process, when it began, and how long this phase has lasted before.
struct Activity {
    Phase phase = Phase::starting;
    bool waits = false;        // for other ranks
    std::int64_t update = 0;   // counted from 1; 0: before the first
    std::int64_t changes = 0;  // stretches that have ended
    double seconds = 0;        // of this stretch
    double longest = 0;        // [s] of the longest that has ended, same phase and `waits`
};

/// "computing update 12", or "starting" before the first.
std::string phase_text(Phase phase, std::int64_t update);

/// The activity of this process, for those who report on it: the watchdog, an error, a crash. There
/// is one object per process, as for the logger, because a crash cannot be handed an object.
/// Lock-free. Only the thread that runs the job writes; any thread may read.
namespace activity {

/// The job's thread enters `phase` of `update`. This is also a fault point with the phase's name.
void enter(Phase phase, std::int64_t update);
/// Enters the next phase of the same update.
void enter(Phase phase);

/// A piece of a long work is done, so its time starts anew. In threads other than the job's it
/// counts for their Helper, if they have one.
void progress() noexcept;

/// Async-signal-safe.
Activity now() noexcept;

/// While one exists, the thread that made it waits for other ranks, whatever its phase. Has no
/// effect in threads other than the job's, or inside another one.
class Waiting {
public:
    Waiting() noexcept;
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

private:
    bool counts_;
};

/// While one exists, the thread that made it waits for work of its own, such as a GPU's, whatever
/// its phase. Has no effect in threads other than the job's, or while that waits for others.
class OwnWork {
public:
    OwnWork() noexcept;
    ~OwnWork();
    OwnWork(const OwnWork&) = delete;
    OwnWork& operator=(const OwnWork&) = delete;

private:
    bool counts_;
};

/// Work that other threads do for the job's thread. While that waits for them, their progress is
/// its own: slow work is no stall, and work that is stuck is one.
class Helper {
public:
    /// While one exists, the thread that made it works for `helper`.
    class Thread {
    public:
        explicit Thread(Helper& helper) noexcept;
        ~Thread();
        Thread(const Thread&) = delete;
        Thread& operator=(const Thread&) = delete;

    private:
        Helper* before_;
    };

    /// Waits for what a thread of this helper computes.
    template <class T>
    void wait(const std::future<T>& result) noexcept {
        while (result.wait_for(std::chrono::milliseconds{100}) != std::future_status::ready)
            pass_on();
    }

    /// Waits on `changed` until `is_ready`, with `lock` held.
    template <class Ready>
    void wait(std::condition_variable& changed,
              std::unique_lock<std::mutex>& lock,
              Ready is_ready) {
        while (!changed.wait_for(lock, std::chrono::milliseconds{100}, is_ready))
            pass_on();
    }

private:
    friend void progress() noexcept;
    void pass_on() noexcept;

    std::atomic<std::int64_t> pieces_{0};
    std::int64_t passed_on_ = 0;
};

}  // namespace activity

}  // namespace hetseq
