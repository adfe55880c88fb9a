#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/train/checkpoint/training_state.hpp"
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

/// Checkpoints that a run may continue from, the newest first. One that is damaged is named and the
/// one before it tried.
class ResumeCandidates {
public:
    /// Collective. Those of `folder` (may be null) unless --overwrite or --resume never says not
    /// to, otherwise --restore-file's. Throws on all ranks: BadConfig for options that contradict
    /// one another, MissingInput where --resume must or --restore-file finds none.
    ResumeCandidates(const HostComm& world, const Options& options, const RunFolder* folder);

    /// Collective. The newest not tried yet whose files are whole; nothing where there are no
    /// candidates. Throws BadData on all ranks when there are some and none is left.
    std::optional<ResumePoint> next();
    /// Collective. `error` is why the last one cannot be used, its files being whole.
    void pass(const std::exception& error);

private:
    const HostComm& world_;
    std::vector<std::filesystem::path> folders_;
    bool are_own_ = true;
    std::size_t tried_ = 0;
};

/// The global batch and the blocks' length stay as they were settled when the run began, unless
/// they are given again.
void keep_settled(SettledOptions& settled, const ResumePoint& point);

/// The first difference between a checkpoint's model, dropout or precision and `settled`; empty if
/// there is none.
std::string foreign_model(const SettledOptions& settled, const ResumePoint& point);

/// Throws BadConfig that names an option which a checkpoint fixes and `settled` has otherwise, and
/// what to do about it.
void check_same_run(const SettledOptions& settled, const ResumePoint& point);

/// The point where a run starts: its first update, or where a checkpoint left it.
struct StartingPoint {
    TrainingProgress progress;             // but for costs
    std::optional<RunIdentity> continued;  // what the run was when it was saved
    std::vector<StepCost> costs =
        {};  // by rank, where the checkpoint knows the speeds of these ranks
    AllocationsByUpdate replay = {};  // cuts that the continued run had planned for these ranks
    std::int64_t held_update = -1;    // of the checkpoint, where the run's own folder holds it
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
