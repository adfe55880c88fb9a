#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/train/checkpoint/checkpoint_pace.hpp"

namespace hetseq {

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
    double saving_s = 0;  // that training waited for checkpoints
    std::optional<CheckpointCost> checkpoint = {};

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

    double seconds() const noexcept {
        return updating_s + lost_s + starting_s + validating_s + saving_s + between_s + other_s;
    }
    double share() const noexcept { return seconds() > 0 ? updating_s / seconds() : 0; }
};

/// Starts before the last one that did not end in order.
std::size_t failures(std::span<const RunStart> starts);
/// Time of all starts by failures [s]; one day where there was none.
double mean_time_between_failures_s(std::span<const RunStart> starts);
Goodput goodput(std::span<const RunStart> starts);

/// The last starts. Empty where there is no such file, or it is damaged, which is logged: nothing
/// depends on it but how often a run saves, and what its report tells.
std::vector<RunStart> read_run_history(const std::filesystem::path& file);

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

    void started();
    void updated(std::int64_t updates, double seconds);
    void validated(double seconds);
    /// Training waited so long for a checkpoint.
    void saved(double waited_s) { current().saving_s += waited_s; }
    /// What checkpoints cost, when one is complete.
    void measured(const CheckpointCost& cost);
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
