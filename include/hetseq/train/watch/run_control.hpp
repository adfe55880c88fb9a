#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "hetseq/util/process/signal_inbox.hpp"

namespace hetseq {

/// Why a run ends before its last update, in the order in which reasons are told.
enum class StopReason { none, signal, stop_file, time_limit, stop_after, patience };

/// "a signal", "the file RUN/STOP", ...
std::string to_string(StopReason reason);

/// A rank's requests to all ranks, as numbers that are summed over the ranks.
struct Requests {
    double signal = 0;
    double stop_file = 0;
    double time_limit = 0;
    double save_signal = 0;
    double save_clock = 0;

    StopReason stop() const noexcept;
    bool save() const noexcept { return save_signal + save_clock > 0; }
};

struct RunControlOptions {
    double start_seconds = 0;                              // of the process, monotonic clock
    double time_limit_s = 0;                               // 0: none
    std::int64_t least_updates = 0;                        // before the time limit counts
    std::filesystem::path stop_file{};                     // looked for on this rank; empty: not
    bool watches_clock = false;                            // on one rank of the job
    double same_request_s = signal_inbox::repeat_seconds;  // after a signal to save
};

/// Notices what asks a run to stop or to save: signals, the stop file and the clock.
class RunControl {
public:
    explicit RunControl(const RunControlOptions& options);

    /// This rank's requests now. `next_update_s`: the time until the job could next notice a
    /// request; `checkpoint_s`: the time that saving takes.
    Requests requests(double next_update_s, double checkpoint_s);
    /// From now on asks to save so long after the last checkpoint [s]; infinite, as at first:
    /// never.
    void save_every(double seconds) { save_every_s_ = seconds; }
    /// What all ranks requested. The same signal may reach this rank later than others: it is no
    /// request of its own.
    void hear(const Requests& of_all);
    /// A checkpoint is being taken: the clock of `save_every` starts anew. `answers`: it is for the
    /// signals so far, too.
    void saved(bool answers);
    /// Removes the stop file, so that the next start does not stop at once. Ignores failures.
    void end() const noexcept;

private:
    bool stop_file_exists();

    RunControlOptions options_;
    std::int64_t asked_ = 0;  // times that `requests` was called, once before each update
    double save_every_s_ = std::numeric_limits<double>::infinity();
    double last_save_;      // monotonic clock [s]
    double last_look_ = 0;  // for the stop file
    bool stop_file_seen_ = false;
    int checkpoints_asked_ = 0;  // signals answered so far
    double last_signal_;         // that any rank noticed, of those to save; monotonic clock [s]
};

}  // namespace hetseq
