#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/optim/schedule.hpp"
#include "hetseq/train/trainer.hpp"
#include "hetseq/train/validation/evaluator.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_length.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/starting_shares.hpp"

namespace hetseq {

class HostComm;
class Replica;
class RunFolder;
class RunListener;

/// The learning rate of a run of that length. Throws BadConfig for options that do not fit it.
Schedule make_schedule(const Parts& parts, PartOptions options, const RunLength& length);

/// A warning where the decay ends before the run, at a rate of 0: later updates change nothing.
/// Empty: it does not.
std::string warning_of_no_rate(const Schedule& schedule,
                               const RunLength& length,
                               const TrainingProgress& progress);

/// The parts of a training run; what is referred to outlives it.
struct TrainingParts {
    const HostComm& world;
    const RunSettings& settings;
    Schedule schedule;
    const RunFolder* folder = nullptr;  // null: nothing is written
    Replica& replica;
    RunListener* listener = nullptr;  // null: nobody listens
};

/// One training run, from its starting point to its end.
class Training {
public:
    /// Collective. Throws on all ranks.
    Training(const TrainingParts& parts,
             const RunLength& length,
             StartingPoint start,
             StartingShares shares);

    /// Collective. `start_seconds`: of the process, monotonic clock.
    TrainerReport run(double start_seconds);
    /// Collective. Runs some updates, for a few seconds, and leaves nothing on disk. Reports what
    /// they say about the rate. Replica and training cannot be used afterwards.
    TrainerReport try_out();

    const RunLength& length() const noexcept { return length_; }
    /// Before it runs.
    std::int64_t updates_done() const noexcept { return start_.progress.updates; }
    SharePlan& shares() noexcept { return shares_.plan; }

private:
    RunIdentity identity() const;
    TrainerRun trainer_run();
    std::function<std::vector<CheckpointFile>(std::span<const GradientSet>)> files_with() const;
    /// Without validation, and leaving nothing on disk.
    TrainerParts trainer_parts(Recorder& recorder, RunControl& control);

    TrainingParts parts_;
    RunLength length_;
    StartingPoint start_;
    StartingShares shares_;
    std::optional<BatchPlan> valid_plan_;
    std::optional<Evaluator> evaluator_;
};

}  // namespace hetseq
