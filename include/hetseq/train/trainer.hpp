#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/state/allocation_log.hpp"
#include "hetseq/state/training_state.hpp"
#include "hetseq/optim/schedule.hpp"
#include "hetseq/train/agreement/update_agreement.hpp"
#include "hetseq/train/averaged_weights.hpp"
#include "hetseq/train/checkpoint/checkpoint_pace.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/parameter_update.hpp"
#include "hetseq/train/rebalancer.hpp"
#include "hetseq/train/record/distribution.hpp"
#include "hetseq/train/record/interval_times.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/record/run_history.hpp"
#include "hetseq/train/record/run_times.hpp"
#include "hetseq/train/record/skipped_updates.hpp"
#include "hetseq/train/record/speed_watch.hpp"
#include "hetseq/train/replica_check.hpp"
#include "hetseq/train/run_checkpoints.hpp"
#include "hetseq/train/trainer_options.hpp"
#include "hetseq/train/update_step.hpp"
#include "hetseq/train/validator.hpp"
#include "hetseq/train/value_gather.hpp"
#include "hetseq/train/watch/run_control.hpp"
#include "hetseq/train/waves/update_figures.hpp"
#include "hetseq/train/waves/wave_ring.hpp"

namespace hetseq {

class BatchPlan;
class CheckpointWriter;
enum class CheckpointReason;
class Communicator;
class Evaluator;
struct CheckpointFile;
class FlatParameters;
class Optimizer;
class Pass;
class RunFolder;
class SharePlan;
class SharedParameters;
class WorkerMap;

/// What follows from the job and from where its run stands.
struct TrainerRun {
    std::int64_t updates = 0;  // of the whole run
    std::uint64_t seed = 1;
    std::int64_t bucket_bytes = 8 << 20;
    std::optional<at::ScalarType> sent_type = {};  // in which gradients are sent; none: their own
    bool follow = false;                           // whether shares follow the ranks' speeds
    bool recomputes_at_need = false;               // where memory lacks and that costs least
    std::vector<int> like_ranks = {};              // by rank, the same number for like devices
    AllocationsByUpdate replay = {};               // cuts to repeat, each from its update on
    bool unlike_devices = false;  // replicas may differ in last bits; a checkpoint makes them one
    RunIdentity identity = {};    // for checkpoints
    TrainingProgress progress = {};  // of the checkpoint that is continued
    LossScale loss_scale = {};
    std::int64_t held_update = -1;  // of that checkpoint, where the run's folder holds it; -1: not
    CheckpointPaceOptions pace = {.every_s = 0};
    double validation_s = 0;             // that one took in an earlier start; 0: not known
    SpeedWatchOptions watch = {};        // on the rank that records
    std::vector<GradientSet> sums = {};  // of `progress.pending`, from that checkpoint
};

/// The parts that a trainer works with; all outlive it.
struct TrainerParts {
    const HostComm& world;
    Communicator& communicator;
    const WorkerMap& workers;
    Pass& pass;
    FlatParameters& parameters;
    Optimizer& optimizer;
    const Schedule& schedule;
    Loader& loader;
    const BatchPlan& plan;
    SharePlan& shares;
    Recorder& recorder;
    Evaluator* evaluator = nullptr;           // null: no validation
    const RunFolder* folder = nullptr;        // null: models are not saved
    CheckpointWriter* checkpoints = nullptr;  // null: none are saved
    RunControl* control = nullptr;            // null: the run ends with its last update
    RunHistory* history = nullptr;            // on the rank that keeps one
    // Where ranks are stages of a pipeline; null: each holds the whole model.
    const SharedParameters* shared = nullptr;
    const CheckpointFile* held_model = nullptr;  // the model's file
    // As many sets of gradients beside the parameters' own as the staleness; missing ones are made.
    std::vector<GradientSet> gradient_sets = {};
    // The files of a checkpoint that holds these sums; null: there is no staleness.
    std::function<std::vector<CheckpointFile>(std::span<const GradientSet>)> files_with = {};
};

/// The whole run's progress, and this rank's times since the run was last started.
struct TrainerReport : TrainingProgress {
    StopReason stop = StopReason::none;
    RunTimes times;
    std::int64_t recomputed_layers = 0;  // of this rank's model, at the end
    double sent_mb = 0;                  // to other stages of a pipeline, in the last update [MiB]
    Distribution pass_ms;                // forward and backward, with waiting for other stages
    // Of this rank's ragged rows, since the run was last started; 0 for rows of one shape.
    std::int64_t values = 0;
    std::int64_t padded_values = 0;
    std::vector<std::int64_t>
        full_allocation;              // of the last full batch, by rank; empty: there was none
    double first_update_seconds = 0;  // monotonic clock, when the first update began
    double checkpoint_wait_ms = 0;    // the longest wait for a checkpoint's copy
    std::optional<Goodput> goodput;   // of all starts, where a history is kept
    std::vector<SlowRank> slow;       // at the end, on the rank that records
    double checkpoint_seconds = 0;    // from the start of the last to its end; 0: none

    /// Whether nothing is left to continue.
    bool is_finished() const noexcept {
        return stop == StopReason::none || stop == StopReason::patience;
    }
};

/// Trains. Shows the life of an update, one line for each stage.
class Trainer {
public:
    Trainer(const TrainerParts& parts, const TrainerOptions& options, TrainerRun run);

    /// Collective. Runs the remaining updates, or until the run is asked to stop. Saves the result.
    TrainerReport run();
    /// S_j / W_j of the last update, by loss term.
    const std::vector<double>& losses() const noexcept { return done_.told.losses; }

private:
    bool update_at_once();
    bool update_late();
    bool begin_wave();
    void compute_wave();
    Verdict take_wave();
    bool is_late() const { return waves_.staleness() > 0 || waves_.size() > 0; }
    bool has_surplus() const { return waves_.size() > waves_.staleness(); }
    void request_ahead();
    void load_next();
    MicroBatchCap most_in_memory() const;
    double told_ms() const;
    double expected_validation_s() const;
    Requests requests() const;
    bool asked_to_stop();
    bool has_made_its_updates() const;
    Verdict run_step();
    double wait_for_values();
    bool optimizer_goes_first(Verdict verdict) const;
    void update_parameters(Verdict verdict);
    void note_optimizer_time();
    void note_own_time(double waited_ms);
    void skip(Verdict verdict);
    UpdateFigures figures_of(const LoadedShare& share) const;
    RankTimes own_times() const;
    ByRankTime<std::vector<double>> gather_times(const RankTimes& own);
    void record(double begin_s);
    void compare_replicas_when_due();
    void compare_replicas();
    void validate_when_due();
    void save_when_due();
    void save(CheckpointReason reason);
    void end();
    bool is_first_rank() const { return parts_.world.rank() == 0; }
    bool leads() const;
    bool ends_epoch() const { return done_.told.ends_epoch; }
    bool validates_after(std::int64_t update) const;

    TrainerParts parts_;
    TrainerOptions options_;
    TrainerRun run_;
    GradientReducer reducer_;
    ParameterUpdate parameter_update_;
    ValueGather gather_;
    UpdateStep step_;
    SkippedUpdates skipped_;
    WaveRing waves_;
    UpdateAgreement agreement_;
    Rebalancer rebalancer_;
    TrainerReport report_;
    ReplicaCheck replicas_;
    AveragedWeights averages_;
    Validator validator_;
    RunCheckpoints checkpoints_;
    SpeedWatch speeds_;
    IntervalTimes interval_times_;

    std::int64_t first_update_ = 0;            // since the run was last started, counted from 0
    std::int64_t update_ = 0;                  // to be applied next
    std::int64_t first_wave_ = 0;              // computed since then
    std::int64_t wave_ = 0;                    // update to be computed next: this one, or later
    std::int64_t requested_ = 0;               // updates whose loading was issued
    std::optional<LoadedShare> share_;         // of the update at work
    std::optional<LoadedShare> next_share_;    // loaded, its weights told to the other ranks
    const LoadedShare* done_share_ = nullptr;  // of the update that is applied; null: it is gone
    UpdateFigures done_;                       // of that update
    double agreed_ = 0;                        // when the ranks had agreed on the last wave [s]
    std::vector<double> compute_ms_;           // by rank, of the update before
    double own_update_ms_ = 0;                 // of the last update, beside computing
    bool is_applied_ = false;                  // the last update
    double gather_wait_ms_ = 0;                // before it, for the values of the one before
    std::int64_t computed_ = 1;                // updates, between the last two that were applied
    double lr_ = 0;
    double copying_ms_ = 0;             // that the update at work waited for a checkpoint's copy
    std::int64_t compared_update_ = 0;  // after which the replicas were last compared
};

}  // namespace hetseq
