#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace hetseq {

/// Why a run ends before its last update, in the order in which reasons are told.
enum class StopReason { none, signal, stop_file, time_limit, patience };

/// "a signal", "the file RUN/STOP", ...
std::string to_string(StopReason reason);

/// A rank's requests to all ranks, as numbers that are summed over the ranks.
struct Requests {
    double signal = 0;
    double stop_file = 0;
    double time_limit = 0;
    double checkpoint = 0;

    StopReason stop() const noexcept;
};

struct RunControlOptions {
    double start_seconds = 0;           // of the process, monotonic clock
    double time_limit_s = 0;            // 0: none
    double save_minutes = 0;            // between checkpoints; 0: not by the clock
    std::filesystem::path stop_file{};  // looked for on this rank; empty: not
    bool watches_clock = false;         // on one rank of the job
};

/// Notices what asks a run to stop or to save: signals, the stop file and the clock.
class RunControl {
public:
    explicit RunControl(const RunControlOptions& options);

    /// This rank's requests now. `next_update_s`: the time until the job could next notice a
    /// request; `checkpoint_s`: the time that saving takes.
    Requests requests(double next_update_s, double checkpoint_s);
    /// A checkpoint is being taken. It answers all signals so far, and the clock of --save-minutes
    /// starts anew.
    void saved();
    /// Removes the stop file, so that the next start does not stop at once. Ignores failures.
    void end() const noexcept;

private:
    bool stop_file_exists();

    RunControlOptions options_;
    double last_save_;      // monotonic clock [s]
    double last_look_ = 0;  // for the stop file
    bool stop_file_seen_ = false;
    int checkpoints_asked_ = 0;  // signals answered so far
};

}  // namespace hetseq
