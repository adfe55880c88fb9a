#pragma once

#include <memory>
#include <optional>
#include <string>

#include "hetseq/comm/communicator.hpp"
#include "hetseq/data/batch_plan.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/checkpoint_writer.hpp"
#include "hetseq/train/evaluator.hpp"
#include "hetseq/train/recorder.hpp"
#include "hetseq/train/share_plan.hpp"
#include "hetseq/train/trainer.hpp"
#include "hetseq/app/balance_setup.hpp"
#include "hetseq/app/rank_setup.hpp"
#include "hetseq/app/resume.hpp"

namespace hetseq {

class MpiEnvironment;
class RunFolder;

/// Collective. The model as options say, on the device: initialised from the seed, or read from
/// --init-model.
std::shared_ptr<Model> build_model(const HostComm& world,
                                   const RankSetup& setup,
                                   const Parts& parts);

/// A corpus, and what reads it batch by batch.
class Feed {
public:
    /// Collective.
    Feed(DataContext& context,
         const std::string& data,
         const RankSetup& setup,
         const Parts& parts,
         const Model& model,
         std::int64_t batch_size,
         Shuffle shuffle);

    Loader& loader() noexcept { return loader_; }
    const BatchPlan& plan() const noexcept { return plan_; }
    Corpus& corpus() noexcept { return corpus_; }
    const Corpus& corpus() const noexcept { return corpus_; }

private:
    Corpus corpus_;
    std::unique_ptr<Collator> collator_;
    Loader loader_;
    BatchPlan plan_;
};

/// All that a training run holds, in the order of lifetime.
class Training {
public:
    /// Collective. Checks everything that can be checked before the first update. `folder` and
    /// `point`, what is continued, may be null.
    Training(const MpiEnvironment& environment,
             const HostComm& world,
             const RankSetup& setup,
             const Parts& parts,
             const RunFolder* folder,
             const ResumePoint* point);

    /// Collective. Takes parameters and optimizer state from `point`; the run continues there.
    /// Throws on all ranks, with nothing changed, when it does not fit model, optimizer or data.
    void restore(const ResumePoint& point);
    /// Collective. `start_seconds`: of the process, monotonic clock.
    TrainerReport run(double start_seconds);

    /// Whether nothing is left to do.
    bool is_finished() const;
    const TrainingProgress& progress() const noexcept { return progress_; }
    std::int64_t updates() const noexcept { return updates_; }
    std::int64_t updates_per_epoch() const { return feed_.plan().batches_per_epoch(); }
    std::int64_t samples() const { return feed_.plan().samples(); }
    std::int64_t parameter_count() const;
    SharePlan& shares() noexcept { return shares_; }
    Model& model() noexcept { return *model_; }
    /// What an order depends on and config.cfg must hold.
    std::int64_t block_length() { return feed_.corpus().block_length(); }

private:
    bool continues_its_batches() const;
    bool continues_as_it_was() const;
    std::unique_ptr<CheckpointWriter> make_checkpoints() const;
    AllocationsByUpdate replay() const;
    void take_first_cut();
    CalibrationSubject calibration_subject();
    std::int64_t span_of_schedule() const;
    RunIdentity identity() const;

    const HostComm& world_;
    const RankSetup& setup_;
    const RunFolder* folder_;
    TrainingProgress progress_;
    std::optional<RunIdentity> continued_;  // what it was when it was saved
    std::unique_ptr<Communicator> communicator_;
    DataContext data_;
    std::shared_ptr<Model> model_;
    FlatParameters parameters_;
    Feed feed_;
    // Before the shares: what memory they leave shows when those are measured.
    std::unique_ptr<Optimizer> optimizer_;
    std::vector<CheckpointFile> checkpoint_files_;
    std::unique_ptr<CheckpointWriter> checkpoints_;  // null: none are saved
    RecordedAllocations recorded_;                   // what --balance file: repeats
    SharePlan shares_;
    std::optional<Feed> valid_feed_;
    std::int64_t updates_;
    std::int64_t schedule_updates_;
    Schedule schedule_;
    std::optional<Evaluator> evaluator_;
};

}  // namespace hetseq
