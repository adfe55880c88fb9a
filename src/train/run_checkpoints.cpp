#include "hetseq/train/run_checkpoints.hpp"

#include <string>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/train/checkpoint/checkpoint_writer.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/record/run_history.hpp"

namespace hetseq {

namespace {

constexpr double saved_bytes_a_second = 100e6;  // assumed until a checkpoint was timed

}  // namespace

void RunCheckpoints::hear(const Requests& requests, std::int64_t updates) {
    if (parts_.control != nullptr)
        parts_.control->hear(requests);
    const bool is_answered = parts_.writer != nullptr && parts_.writer->last_update() == updates;
    const bool is_kept = is_answered && !parts_.writer->last_is_timed();
    is_asked_ = is_asked_ || (requests.save_signal > 0 && !is_kept);
    clock_asks_ = clock_asks_ || (requests.save_clock > 0 && !is_answered);
}

bool RunCheckpoints::may_change_parameters() const {
    return parts_.writer == nullptr || !parts_.writer->is_copying();
}

double RunCheckpoints::wait_for_copy() {
    return parts_.writer == nullptr ? 0 : parts_.writer->wait_for_copy();
}

double RunCheckpoints::expected_s() const {
    if (parts_.writer == nullptr)
        return 0;
    return parts_.writer->seconds() > 0
               ? parts_.writer->seconds()
               : static_cast<double>(parts_.writer->bytes()) / saved_bytes_a_second;
}

std::optional<CheckpointReason> RunCheckpoints::due(const SavePoint& point) {
    if (parts_.writer == nullptr)
        return {};
    parts_.writer->poll();
    tell();
    note_cost();
    const TrainingProgress& progress = point.progress;
    const bool by_updates = by_updates_ > 0 && progress.updates % by_updates_ == 0;
    const bool by_epochs = by_epochs_ > 0 && point.ends_epoch && progress.epochs % by_epochs_ == 0;
    is_asked_ = is_asked_ || by_updates || by_epochs;
    if (!(is_asked_ || clock_asks_) || !point.can_save)
        return {};
    // Skipped updates leave parameters as they were, and these may be what is wrong with them.
    if (progress.skips_in_a_row > 0 && !point.is_last)
        return {};
    const bool for_the_clock = !is_asked_ && pace_.is_automatic() && !point.is_last;
    return for_the_clock ? CheckpointReason::clock : CheckpointReason::other;
}

void RunCheckpoints::prepare() {
    parts_.writer->wait();
    tell();
    note_cost();
    is_asked_ = clock_asks_ = false;
}

void RunCheckpoints::start(const TrainingState& state, CheckpointReason reason, double began_s) {
    parts_.writer->start(state, reason);
    if (parts_.control != nullptr)
        parts_.control->saved(reason != CheckpointReason::clock);
    const double waited_s = monotonic_seconds() - began_s;
    pace_.began(waited_s);
    if (parts_.history != nullptr)
        parts_.history->saved(waited_s);
}

void RunCheckpoints::finish() {
    activity::enter(Phase::saving);
    const double begin = monotonic_seconds();
    parts_.writer->finish();  // no update beside it tells what it costs
    tell();
    if (parts_.history != nullptr)
        parts_.history->saved(monotonic_seconds() - begin);
    parts_.writer->report_removed();
    activity::enter(Phase::ending);
}

// Of the last one, once it is complete.
void RunCheckpoints::tell() {
    if (const auto update = parts_.writer->take_complete())
        parts_.recorder.saved(*update, parts_.writer->path_of(*update).string());
}

// Of the last one, once it has ended.
void RunCheckpoints::note_cost() {
    if (!pace_.is_saving() || parts_.writer->is_under_way())
        return;
    if (parts_.writer->has_failed())
        pace_.failed();
    else
        pace_.ended(parts_.writer->seconds());
    if (const auto cost = pace_.cost(); cost && parts_.history != nullptr)
        parts_.history->measured(*cost);
}

}  // namespace hetseq
