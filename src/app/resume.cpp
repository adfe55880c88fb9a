#include "hetseq/app/resume.hpp"

#include <array>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/checkpoint_reader.hpp"
#include "hetseq/train/run_folder.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

// Options that a checkpoint fixes, and the --reset-... that frees them.
struct FixedOptions {
    const char* reset;  // empty: none
    bool Options::*is_reset;
    std::vector<std::string> names;
};

const std::array<FixedOptions, 4>& fixed_options() {
    static const std::array<FixedOptions, 4> groups{{
        {"",
         nullptr,
         {"task", "model", "model-config", "dropout", "attention-dropout", "precision"}},
        {"--reset-position",
         &Options::reset_position,
         {"dataset", "batching", "seed", "shuffle-blocks", "block-length", "batch-size"}},
        {"--reset-optimizer",
         &Options::reset_optimizer,
         {"optimizer",
          "adam-betas",
          "adam-eps",
          "adadelta-eps",
          "rho",
          "momentum",
          "weight-decay",
          "clip-norm"}},
        {"--reset-lr-scheduler",
         &Options::reset_lr_scheduler,
         {"lr",
          "lr-scheduler",
          "warmup-updates",
          "warmup-init-lr",
          "total-num-update",
          "end-learning-rate",
          "power",
          "lr-shrink",
          "lr-step-epochs"}},
    }};
    return groups;
}

bool resets(const Options& options) {
    return options.reset_optimizer || options.reset_lr_scheduler || options.reset_position;
}

void check_options(const Options& options, const RunFolder* folder) {
    if (resets(options) && options.restore_file.empty())
        throw BadConfig("there is nothing to reset",
                        "--reset-... concern a --restore-file",
                        "give the checkpoint to start from, and another --save-dir");
    if (options.resume == "must" && folder == nullptr)
        throw BadConfig(
            "there is nothing to resume", "--save-dir is empty", "give the run's folder");
    if (options.resume == "must" && options.overwrite)
        throw BadConfig("--resume must and --overwrite contradict each other", "", "give one");
}

// Of the run itself.
std::vector<fs::path> own_candidates(const Options& options, const RunFolder* folder) {
    if (folder == nullptr || !folder->holds_run() || options.overwrite || options.resume == "never")
        return {};
    std::vector<fs::path> folders = checkpoints_at(folder->path());
    std::error_code ignored;
    if (folders.empty() && fs::exists(folder->summary(), ignored))
        throw BadConfig(folder->path().string() + " holds a run that cannot be continued",
                        "it has results and no checkpoint",
                        "give another --save-dir, or --overwrite to start anew");
    return folders;
}

// A checkpoint, or those of a run.
std::vector<fs::path> given_candidates(const std::string& restore_file) {
    std::vector<fs::path> folders = checkpoints_at(restore_file);
    if (folders.empty())
        throw MissingInput("--restore-file " + restore_file + " is no checkpoint",
                           "neither it nor a folder 'checkpoints' in it holds one",
                           "give a run's folder or one of its checkpoints");
    return folders;
}

std::string lines_of(const std::vector<fs::path>& paths) {
    std::vector<std::string> lines;
    for (const fs::path& path : paths)
        lines.push_back(path.string());
    return join(lines, "\n");
}

// The first of `group` that the checkpoint has otherwise; empty where none.
std::string differing_option(const FixedOptions& group,
                             const OptionValues& values,
                             const ResumePoint& point) {
    for (const std::string& name : group.names) {
        const auto stored = point.state.run.options.find(name);
        if (stored != point.state.run.options.end() && stored->second != values.at(name))
            return name;
    }
    return "";
}

std::string advice_on(const FixedOptions& group, const ResumePoint& point) {
    const std::string other = "start another run";
    if (*group.reset == 0)
        return "give the same, or " + other;
    return "give the same, or " + other + " from it: --save-dir OTHER --restore-file " +
           point.folder.string() + " " + group.reset;
}

}  // namespace

ResumeCandidates::ResumeCandidates(const HostComm& world,
                                   const Options& options,
                                   const RunFolder* folder)
    : world_{world} {
    const std::string found = agree_on(world, [&] {
        check_options(options, folder);
        if (world.rank() != 0)
            return std::string();
        std::vector<fs::path> own = own_candidates(options, folder);
        if (own.empty() && options.resume == "must")
            throw MissingInput(folder->path().string() + " holds no checkpoint",
                               "--resume must",
                               "check --save-dir, or start with --resume auto");
        if (own.empty() && !options.restore_file.empty())
            return "given\n" + lines_of(given_candidates(options.restore_file));
        return "own\n" + lines_of(own);
    });
    std::vector<std::string> lines = split(world.broadcast(found, 0), '\n');
    are_own_ = lines.front() == "own";
    for (std::size_t i = 1; i < lines.size(); ++i)
        if (!lines[i].empty())
            folders_.emplace_back(lines[i]);
}

std::optional<ResumePoint> ResumeCandidates::next() {
    while (tried_ < folders_.size()) {
        const fs::path& folder = folders_[tried_++];
        try {
            return ResumePoint{folder, verified_state(world_, folder), are_own_};
        } catch (const AgreedError& error) {
            pass(error);
        }
    }
    if (folders_.empty())
        return std::nullopt;
    throw BadData("none of the " + std::to_string(folders_.size()) + " checkpoints can be used",
                  "each is named above",
                  "mend what is wrong, or start anew with --overwrite");
}

void ResumeCandidates::pass(const std::exception& error) {
    log::warn(folders_[tried_ - 1].string() + " cannot be used: " + message_of(error) +
              (tried_ < folders_.size() ? "; the one before it is tried" : ""));
}

void keep_settled(SettledOptions& settled, const ResumePoint& point) {
    if (!point.is_own && settled.options.reset_position)
        return;
    const auto keep = [&](const char* name) {
        const auto stored = point.state.run.options.find(name);
        if (stored == point.state.run.options.end() || settled.values.at(name) != "0")
            return false;
        settled.values[name] = stored->second;
        return true;
    };
    keep("block-length");
    if (keep("batch-size"))
        settled.values["update-freq"] = "1";
    settled.options = typed_options(settled.values);
}

std::string foreign_model(const OptionValues& values, const ResumePoint& point) {
    const std::string name = differing_option(fixed_options().front(), values, point);
    if (name.empty())
        return "";
    return "its --" + name + " is '" + point.state.run.options.at(name) + "', this run's is '" +
           values.at(name) + "'";
}

void check_same_run(const OptionValues& values, const Options& options, const ResumePoint& point) {
    for (const FixedOptions& group : fixed_options()) {
        if (!point.is_own && group.is_reset != nullptr && options.*group.is_reset)
            continue;
        const std::string name = differing_option(group, values, point);
        if (!name.empty())
            throw BadConfig("--" + name + " is '" + values.at(name) + "', " +
                                point.folder.string() + " was trained with '" +
                                point.state.run.options.at(name) + "'",
                            "a run keeps it to its end",
                            advice_on(group, point));
    }
}

TrainingProgress continued_progress(const Options& options, const ResumePoint& point) {
    TrainingProgress progress = point.state.progress;
    progress.costs.clear();
    if (point.is_own)
        return progress;
    if (options.reset_optimizer && options.reset_lr_scheduler && options.reset_position)
        return {};
    if (options.reset_lr_scheduler)
        progress.schedule_origin = progress.updates;
    if (options.reset_position) {
        progress.order_origin = progress.updates;
        progress.epochs = 0;
    }
    progress.window = {};
    progress.last_valid.reset();
    progress.best_valid.reset();
    progress.best_update = progress.validations_since_best = 0;
    return progress;
}

}  // namespace hetseq
