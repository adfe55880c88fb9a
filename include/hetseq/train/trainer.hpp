#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/speed_tracker.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/optim/schedule.hpp"
#include "hetseq/train/allocation_log.hpp"
#include "hetseq/train/evaluator.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/recorder.hpp"
#include "hetseq/train/update_agreement.hpp"
#include "hetseq/train/update_step.hpp"

namespace hetseq {

class BatchPlan;
class Communicator;
class FlatParameters;
class Optimizer;
class RunFolder;
class SharePlan;

struct TrainerOptions {
    std::int64_t updates = 0;  // to run
    std::uint64_t seed = 1;
    double clip_norm = 0;  // of the gradient's 2-norm; 0: no clipping
    std::int64_t bucket_bytes = 8 << 20;
    std::int64_t valid_interval = 0;  // updates; 0: at the end of each epoch
    std::int64_t max_skips = 100;     // updates in a row whose loss is not finite
    bool follow = false;              // whether shares follow the ranks' speeds
    AllocationsByUpdate replay = {};  // otherwise, cuts to repeat
};

/// What a trainer works with; all outlive it.
struct TrainerParts {
    const HostComm& world;
    Communicator& communicator;
    Model& model;
    FlatParameters& parameters;
    Optimizer& optimizer;
    const Schedule& schedule;
    Loader& loader;
    const BatchPlan& plan;
    SharePlan& shares;
    Recorder& recorder;
    Evaluator* evaluator = nullptr;     // null: no validation
    const RunFolder* folder = nullptr;  // null: models are not saved
};

/// What a run was, as far as this rank saw it.
struct TrainerReport {
    std::int64_t updates = 0;
    std::int64_t epochs = 0;   // complete ones
    std::int64_t samples = 0;  // of all ranks
    std::int64_t units = 0;
    std::int64_t skipped = 0;
    std::vector<double> step_ms;     // by update, validation excluded
    std::vector<double> compute_ms;  // this rank's, by update
    std::vector<double> wait_ms;
    std::vector<double> reduce_ms;  // of all buckets, overlapped with backward or not
    std::vector<double> optimizer_ms;
    std::vector<double> data_ms;
    std::int64_t reallocations = 0;
    std::vector<StepCost> costs;       // by rank, as followed to the end; on rank 0 with `follow`
    std::vector<double> finish_ratio;  // wait in finish() over the last bucket's own time
    std::int64_t own_units = 0;        // this rank's
    double first_update_seconds = 0;   // monotonic clock, when the first update began
    std::optional<Evaluation> last_valid;
    std::optional<Evaluation> best_valid;
    std::int64_t best_update = 0;
};

/// Trains: the life of an update, one line a stage.
class Trainer {
public:
    Trainer(const TrainerParts& parts, const TrainerOptions& options);

    /// Collective. Runs all updates.
    TrainerReport run();
    /// S_j / W_j of the last update, by loss term.
    const std::vector<double>& losses() const noexcept { return step_.losses(); }

private:
    void request_ahead();
    void load_next();
    void follow_speeds();
    void change_allocation(const std::vector<std::int64_t>& allocation);
    void update_parameters(Verdict verdict);
    void skip();
    void record();
    void validate_when_due();

    TrainerParts parts_;
    TrainerOptions options_;
    GradientReducer reducer_;
    UpdateStep step_;
    UpdateAgreement agreement_;
    AllocationLog allocations_;
    std::optional<SpeedTracker> tracker_;  // on rank 0, which decides for all
    TrainerReport report_;

    std::int64_t update_ = 0;                // the one at work, counted from 0
    std::int64_t requested_ = 0;             // updates whose loading was issued
    std::optional<LoadedShare> share_;       // of the update at work
    std::optional<LoadedShare> next_share_;  // loaded, its weights told to the other ranks
    std::vector<std::int64_t> allocation_;   // of the update at work, by rank
    std::deque<std::vector<std::int64_t>> requested_allocations_;
    std::vector<std::int64_t> proposal_;   // not told yet
    std::vector<double> rank_compute_ms_;  // by rank, of the update before
    double optimizer_ms_ = 0;
    double lr_ = 0;
    double grad_norm_ = 0;
    std::int64_t skips_in_a_row_ = 0;
};

}  // namespace hetseq
