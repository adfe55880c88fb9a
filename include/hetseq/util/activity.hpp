#pragma once

#include <cstdint>
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

/// A piece of a long work is done, so its time starts anew. Has no effect in threads other than the
/// job's.
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

}  // namespace activity

}  // namespace hetseq
