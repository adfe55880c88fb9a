#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hetseq/train/training_state.hpp"
#include "hetseq/app/rank_setup.hpp"

namespace hetseq {

class HostComm;
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

/// What was settled when the run began holds where it is not given again: the global batch, the
/// blocks' length.
void keep_settled(SettledOptions& settled, const ResumePoint& point);

/// What a checkpoint's model, dropout or precision has otherwise than `values`; empty where
/// nothing.
std::string foreign_model(const OptionValues& values, const ResumePoint& point);

/// Throws BadConfig that names an option which a checkpoint fixes and `values` has otherwise, and
/// what to do about it.
void check_same_run(const OptionValues& values, const Options& options, const ResumePoint& point);

/// What the run has behind it once --reset-... took its part.
TrainingProgress continued_progress(const Options& options, const ResumePoint& point);

}  // namespace hetseq
