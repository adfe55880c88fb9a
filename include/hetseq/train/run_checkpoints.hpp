#pragma once

#include <cstdint>
#include <optional>

#include "hetseq/train/checkpoint/checkpoint_pace.hpp"
#include "hetseq/train/trainer_options.hpp"
#include "hetseq/train/watch/run_control.hpp"

namespace hetseq {

enum class CheckpointReason;
class CheckpointWriter;
class Recorder;
class RunHistory;
struct TrainingProgress;
struct TrainingState;

/// Where a run stands when it asks whether to save.
struct SavePoint {
    const TrainingProgress& progress;
    bool ends_epoch = false;  // its last update
    bool is_last = false;     // nothing is trained after it
    bool can_save = true;     // false: what is pending is more than a checkpoint holds
};

/// A run's checkpoints: when they begin, what they cost, and what is told of them. All ranks call
/// the same members in the same order from one thread.
class RunCheckpoints {
public:
    /// All outlive it.
    struct Parts {
        CheckpointWriter* writer = nullptr;  // null: none are saved, and most members do nothing
        RunControl* control = nullptr;
        RunHistory* history = nullptr;  // on the rank that keeps one
        Recorder& recorder;
    };

    RunCheckpoints(const Parts& parts,
                   const TrainerOptions& options,
                   const CheckpointPaceOptions& pace)
        : parts_{parts},
          by_epochs_{options.save_interval},
          by_updates_{options.save_interval_updates},
          pace_{pace} {}

    /// What the ranks asked for together, after `updates` updates. A checkpoint that was taken
    /// there already answers them; one that the clock asked for is soon removed, and answers no
    /// signal.
    void hear(const Requests& requests, std::int64_t updates);
    /// What an update took, with what it waited for a checkpoint's copy [s].
    void updated(double step_s) { pace_.updated(step_s); }

    /// Whether parameters may change without waiting for a copy.
    bool may_change_parameters() const;
    /// Nobody may write to the tensors before this returns. Returns the time it waited [ms].
    double wait_for_copy();
    /// How long the next checkpoint takes from its start to its end, as far as it is known [s].
    double expected_s() const;
    /// From one checkpoint to the next by the clock [s].
    double interval_s() const { return pace_.interval_s(); }

    /// Collective, does not wait. Advances the checkpoint that is under way. Returns why another
    /// one is due now.
    std::optional<CheckpointReason> due(const SavePoint& point);
    /// Collective. Waits for an earlier checkpoint. What was asked for is done by the next `start`.
    void prepare();
    /// Collective. Starts to save `state`, which training prepared since `began_s` (monotonic
    /// clock).
    void start(const TrainingState& state, CheckpointReason reason, double began_s);
    /// Collective. Waits for the last one at the end of the run.
    void finish();

private:
    void tell();
    void note_cost();

    Parts parts_;
    std::int64_t by_epochs_, by_updates_;  // 0: not
    CheckpointPace pace_;
    bool is_asked_ = false;  // by a signal or an interval
    bool clock_asks_ = false;
};

}  // namespace hetseq
