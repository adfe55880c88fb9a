#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetseq/train/checkpoint/checkpoint_pace.hpp"

namespace hetseq {

/// A device that was far below its kind's speed (SlowRanks).
struct SlowDevice {
    std::string device;  // RankInfo::mark
    double speed = 0;    // as a part of its kind's
    double seen = 0;     // when, in seconds since 1970
};

/// A start of a run, as RUN/starts.json has it. Times of day are seconds since 1970.
struct RunStart {
    double began = 0;        // when its processes began
    double seen = 0;         // when it last gave a sign of life
    std::string ended = {};  // finished, stopped; empty: it goes on, or died
    int ranks = 0;
    std::int64_t first_update = 0;  // that it was to compute, counted from 0
    std::int64_t updates = 0;       // of the run, when it was last seen
    double starting_s = 0;          // until its first update
    double updating_s = 0;
    double validating_s = 0;
    double saving_s = 0;      // that training waited for checkpoints
    double validation_s = 0;  // the longest one; 0: there was none
    std::optional<CheckpointCost> checkpoint = {};
    std::vector<SlowDevice> slow = {};  // known then, of earlier starts too

    double seconds() const noexcept { return seen - began; }
};

/// Where the time of all starts went [s].
struct Goodput {
    double updating_s = 0;  // in updates that were kept
    double lost_s = 0;      // in updates that were computed again
    double starting_s = 0, validating_s = 0, saving_s = 0;
    double between_s = 0;  // from the last sign of life of a start to the next one's beginning
    double other_s = 0;
    std::size_t starts = 0, failures = 0;

    double seconds() const noexcept;
    double share() const noexcept { return seconds() > 0 ? updating_s / seconds() : 0; }
};

/// A part of the time, for files and for people. A new one needs a line here.
struct GoodputPart {
    std::string_view key;
    std::string_view words;
    double Goodput::*seconds;
};
inline constexpr GoodputPart goodput_parts[]{
    {"updating", "went into updates that were kept", &Goodput::updating_s},
    {"lost", "into updates that were computed again", &Goodput::lost_s},
    {"starting", "into starting", &Goodput::starting_s},
    {"validating", "into validation", &Goodput::validating_s},
    {"saving", "into checkpoints", &Goodput::saving_s},
    {"between", "passed between starts", &Goodput::between_s},
    {"other", "into the rest", &Goodput::other_s}};

/// Starts before the last one that did not end in order.
std::size_t failures(std::span<const RunStart> starts);
/// Those that are known at `now` [s since 1970]: of the last start, not older than a day.
std::vector<SlowDevice> slow_devices(std::span<const RunStart> starts, double now);
/// Time of all starts by failures [s]. Where there was none it is an hour and what the run has
/// lasted, at most a day.
double mean_time_between_failures_s(std::span<const RunStart> starts);
Goodput goodput(std::span<const RunStart> starts);

enum class DamagedHistory {
    told,    // in the log
    ignored  // somebody reads it again
};
/// The last starts. Empty where there is no such file, or it is damaged: how often a run saves,
/// what its report tells and which ranks --drop-below leaves out depend on it, and no result.
std::vector<RunStart> read_run_history(const std::filesystem::path& file,
                                       DamagedHistory damaged = DamagedHistory::told);

/// Keeps RUN/starts.json. A failure to write it is no failure of the run.
class RunHistory {
public:
    struct Clock {
        std::function<double()> since_1970;  // [s]
        std::function<double()> monotonic;   // [s]
        /// The real ones.
        Clock();
    };

    /// Begins a start, `seconds_ago`. `may_write`: asked before the file is changed.
    RunHistory(
        std::filesystem::path file,
        double seconds_ago,
        int ranks,
        std::int64_t first_update,
        std::function<bool()> may_write = [] { return true; },
        const Clock& clock = {});

    const std::vector<RunStart>& starts() const noexcept { return starts_; }
    /// What earlier starts knew of checkpoints.
    std::optional<CheckpointCost> known_cost() const;
    /// How long a validation took in the latest start that had one [s]; 0: none had.
    double known_validation_s() const;

    void started();
    void updated(std::int64_t updates, double seconds);
    void validated(double seconds);
    /// Training waited so long for a checkpoint.
    void saved(double waited_s) { current().saving_s += waited_s; }
    /// What checkpoints cost, when one is complete.
    void measured(const CheckpointCost& cost);
    /// The device is far below its kind's speed, or no more.
    void slow(const std::string& device, double speed);
    void recovered(const std::string& device);
    /// Whether this start or one before found it slow.
    bool is_slow(const std::string& device) const;
    /// `how`: finished, stopped.
    void end(const std::string& how);

private:
    RunStart& current() { return starts_.back(); }
    void see(double least_s);
    void write() const;

    std::filesystem::path file_;
    std::function<bool()> may_write_;
    Clock clock_;
    std::vector<RunStart> starts_;  // the current one last
    double began_;                  // the current one, monotonic [s]
    double written_ = 0;            // monotonic [s]
};

}  // namespace hetseq
