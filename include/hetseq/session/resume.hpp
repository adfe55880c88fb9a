#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/state/training_state.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/train/checkpoint/checkpoint_reader.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

class HostComm;
class Replica;
class RunFolder;

/// A checkpoint to continue from.
struct ResumePoint {
    std::filesystem::path folder;
    TrainingState state;
    bool is_own = true;  // of the run itself; otherwise --restore-file's
};

/// A checkpoint that was found complete, among others.
struct VerifiedCheckpoint {
    std::optional<ResumePoint> point = {};          // none was
    std::vector<std::filesystem::path> found = {};  // all that there were
    double seconds = 0;                             // that it took
};

/// Checkpoints that a run may continue from, the newest first. If one is damaged, it is named and
/// the one before it is tried.
class ResumeCandidates {
public:
    /// Collective. Takes those of `folder` (may be null) unless --overwrite or --resume never
    /// excludes them, otherwise those of --restore-file. Where they are those among which
    /// `verified` was found, that one is the first, and is not verified again. Throws on all ranks:
    /// BadConfig for options that contradict each other, MissingInput if --resume must or
    /// --restore-file finds none.
    ResumeCandidates(const HostComm& world,
                     const Options& options,
                     const RunFolder* folder,
                     VerifiedCheckpoint verified = {});

    /// Collective. The newest one that was not tried yet and whose files are complete, but for the
    /// optimizer's with --reset-optimizer; empty if there are no candidates. Throws on all ranks if
    /// there were candidates and none is left: IoError if one could not be read, BadConfig if all
    /// are of other options, BadData otherwise.
    std::optional<ResumePoint> next();
    /// Collective. `error` says why the last one cannot be used although its files are complete.
    void pass(const std::exception& error);
    /// The same where it is of another model: `difference` says in what (`foreign_model`).
    void pass_foreign(const std::string& difference);
    /// All that there were at first, the newest first.
    const std::vector<std::filesystem::path>& found() const noexcept { return folders_; }

private:
    TrainingState read(const std::filesystem::path& folder) const;

    const HostComm& world_;
    std::vector<std::filesystem::path> folders_;
    bool are_own_ = true;
    bool could_not_read_ = false;          // one of them
    std::size_t foreign_ = 0;              // how many are of other options
    std::optional<ResumePoint> verified_;  // the next one
    OptimizerFiles optimizer_files_ = OptimizerFiles::read;
    std::size_t tried_ = 0;
};

/// Keeps the global batch and the block length that were settled when the run began, unless they
/// are given again.
void keep_batch_of_checkpoint(SettledOptions& settled, const ResumePoint& point);

/// The first difference between a checkpoint's model, dropout or precision and `settled`; empty if
/// there is none.
std::string foreign_model(const SettledOptions& settled, const ResumePoint& point);

/// Throws BadConfig if `settled` has another value for an option that a checkpoint fixes. It names
/// the option and what to do about it.
void check_same_run(const SettledOptions& settled, const ResumePoint& point);

/// The point where a run starts: its first update, or the update of a checkpoint.
struct StartingPoint {
    TrainingProgress progress;             // but for costs
    std::optional<RunIdentity> continued;  // what the run was when it was saved
    std::vector<StepCost> costs =
        {};  // by rank, where the checkpoint knows the speeds of these ranks
    AllocationsByUpdate replay = {};     // cuts that the continued run had planned for these ranks
    std::int64_t held_update = -1;       // of the checkpoint, where the run's own folder holds it
    std::vector<GradientSet> sums = {};  // of `progress.pending`
};

/// The progress of the run, without what --reset-... drops.
TrainingProgress continued_progress(const Options& options, const ResumePoint& point);

/// Collective. Takes parameters and optimizer state from `point` into `replica`. Throws on all
/// ranks, with nothing changed, when it does not fit model, optimizer or data.
StartingPoint restore(const HostComm& world,
                      const RunSettings& settings,
                      const ResumePoint& point,
                      Replica& replica);

}  // namespace hetseq
