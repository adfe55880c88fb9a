#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "hetseq/train/watch/stall_detector.hpp"

namespace hetseq {

class HostComm;
class MpiEnvironment;

/// Prints `stall` with this rank's name and ends the job with the exit code of failed
/// communication.
void end_stalled_job(const Stall& stall);

/// What a rank is judged by. A command whose pieces of work have no known length is judged by
/// silence alone: whether each process still runs and can be reached.
enum class Judge { work_and_silence, silence };

struct WatchdogOptions {
    double stall_timeout = 300;  // [s]; 0: nobody judges
    Judge judge = Judge::work_and_silence;
    std::chrono::milliseconds period{1000};    // of beats, unless the timeout is short
    std::chrono::milliseconds farewell{2000};  // that the others have for their last beat
    std::function<void(const Stall&)> end = end_stalled_job;  // called once, on the watching thread
};

/// While one exists, a rank that stalls, or a link that is cut, ends the job with a message that
/// names rank, host, phase and duration. A separate thread tells rank 0 what this rank is doing
/// (`activity`). Rank 0 judges all ranks, and the other ranks judge whether rank 0 is there.
/// Without MPI_THREAD_MULTIPLE, each rank judges only its own work.
class Watchdog {
public:
    /// Collective.
    Watchdog(const MpiEnvironment& environment,
             const HostComm& world,
             const WatchdogOptions& options = {});
    /// Sends the other ranks a last beat and waits briefly for theirs, except while an exception
    /// unwinds.
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// From now on judges so. All ranks call it at the same place.
    void change(double stall_timeout, Judge judge);

private:
    class Watch;
    std::unique_ptr<Watch> watch_;
};

}  // namespace hetseq
