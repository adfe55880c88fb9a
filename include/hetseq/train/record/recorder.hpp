#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/util/log.hpp"
#include "hetseq/util/rank_time.hpp"
#include "hetseq/state/evaluation.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/train/record/metrics_file.hpp"
#include "hetseq/train/record/progress_bar.hpp"
#include "hetseq/train/record/scalar_events.hpp"
#include "hetseq/train/validation/best_by.hpp"

namespace hetseq {

struct Goodput;
class RunFolder;
class RunListener;
enum class ToldEvent;

/// The record of one update, the same on all ranks except for the times.
struct UpdateRecord {
    std::int64_t update = 0;                   // counted from 1
    std::int64_t epoch = 0;                    // counted from 1
    std::vector<double> losses;                // by term, normalised
    std::vector<std::size_t> weightless = {};  // terms that the batch has no weight in
    bool is_applied = true;                    // it was not skipped
    double lr = 0;
    double grad_norm = 0;                        // before clipping
    std::optional<LossScale::State> loss_scale;  // none: there is none
    std::int64_t samples = 0;
    std::int64_t units = 0;
    double step_ms = 0;
    std::vector<std::int64_t> allocation;             // units by rank
    std::vector<double> compute_ms;                   // by rank, of the update before
    ByRankTime<std::vector<double>> rank_times = {};  // where a line is due: its updates' means
};

/// Tells the user how a run goes: by log lines, a progress bar on a terminal, metrics.jsonl and,
/// with the same numbers, an event file for TensorBoard. It does nothing on ranks other than 0.
class Recorder {
public:
    struct Options {
        std::int64_t log_interval = 100;  // updates
        std::int64_t total_updates = 0;
        std::int64_t first_update = 1;  // of this start, counted from 1
        std::vector<std::string> loss_terms;
        std::string unit = "samples";     // what rates are told in: "samples" or "tokens"
        BestBy best_by = {};              // which validation is called the best
        MetricsWindow window = {};        // of a run that is continued
        RunListener* listener = nullptr;  // hears of each update; null: nobody does
    };

    /// `folder` may be null: nothing is written then.
    Recorder(const RunFolder* folder, int rank, Options options);

    /// True if a line follows that update, counted from 1. All ranks get the same answer.
    bool is_due(std::int64_t update) const noexcept;
    void train(const UpdateRecord& record);
    void valid(std::int64_t update, std::int64_t epoch, const Evaluation& evaluation, bool best);
    void event(std::int64_t update,
               const std::string& message,
               log::Level level = log::Level::warning);
    /// The checkpoint of that update is complete, in `path`.
    void saved(std::int64_t update, const std::string& path);
    /// Where the time of all starts went, as the event file alone has it, at that update.
    void goodput(std::int64_t update, const Goodput& goodput);
    /// Throws what a listener has thrown.
    void require_listener() const;
    /// Ends the progress bar's line.
    void finish();
    /// The updates since the last log line.
    const MetricsWindow& window() const noexcept { return window_; }

private:
    bool is_heard(ToldEvent event) const;
    void tell_update(const UpdateRecord& record);
    void count_compute(const UpdateRecord& record);
    void log_interval(const UpdateRecord& last);
    std::vector<double> mean_losses() const;
    std::string slowest_rank() const;
    void write(std::int64_t update, const std::string& line, const std::vector<Scalar>& scalars);

    const RunFolder* folder_;
    bool active_;
    Options options_;
    ProgressBar bar_;
    std::optional<MetricsFile> metrics_;
    std::optional<ScalarEvents> events_;
    MetricsWindow window_;
    // of the window's updates since the run was last started
    std::int64_t timed_updates_ = 0;
    std::int64_t timed_samples_ = 0;
    std::int64_t timed_units_ = 0;
    double ms_ = 0;
    // of the updates whose times by rank are known; sums
    std::vector<double> rank_compute_ms_;
    double computed_in_ms_ = 0;
    double computed_updates_ = 0;
    struct {
        double step_ms = 0;
        std::vector<std::int64_t> allocation = {};
    } before_;  // the update before, since the run was last started
};

}  // namespace hetseq
