#include "hetseq/session/resume.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/checkpoint/checkpoint_reader.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/session/options/config_file_values.hpp"
#include "hetseq/session/options/option_name.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/resumed_data.hpp"
#include "hetseq/session/run_identity.hpp"

namespace hetseq {

namespace fs = std::filesystem;

namespace {

// A kind of options that a checkpoint fixes, and the --reset-... that frees them.
struct FixedOptions {
    FixedWith with;
    const char* reset;  // empty: none
    bool Options::*is_reset;
};

constexpr std::array<FixedOptions, 4> fixed_options{{
    {FixedWith::run, "", nullptr},
    {FixedWith::position, "--reset-position", &Options::reset_position},
    {FixedWith::optimizer, "--reset-optimizer", &Options::reset_optimizer},
    {FixedWith::schedule, "--reset-lr-scheduler", &Options::reset_lr_scheduler},
}};

void check_options(const Options& options, const RunFolder* folder) {
    for (const FixedOptions& group : fixed_options)
        if (group.is_reset != nullptr && options.*group.is_reset && options.restore_file.empty())
            throw BadConfig(std::string(group.reset) + ": there is nothing to reset",
                            "no --restore-file is given",
                            "give the checkpoint to start from, and another --save-dir");
    if (options.resume == "must" && folder == nullptr)
        throw BadConfig("--resume must: there is nothing to resume",
                        "no --save-dir is given",
                        "give the run's folder");
    if (options.resume == "must" && options.overwrite)
        throw BadConfig(
            "--resume must and --overwrite contradict each other", "", "give only one of them");
}

// The checkpoints of the run itself.
std::vector<fs::path> own_candidates(const Options& options, const RunFolder* folder) {
    if (folder == nullptr || !folder->holds_run() || options.overwrite || options.resume == "never")
        return {};
    if (!options.dry_run)
        folder->checkpoints().put_back();
    return checkpoints_at(folder->path());
}

// A checkpoint, or those of a run.
std::vector<fs::path> given_candidates(const std::string& restore_file) {
    std::vector<fs::path> folders = checkpoints_at(restore_file);
    if (folders.empty())
        throw MissingInput("--restore-file " + restore_file + " is not a checkpoint",
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

// fp64 on all ranks, or on none; the other precisions share a checkpoint.
bool is_fp64(const ByRank<PrecisionChoice>& precision) {
    const std::vector<PrecisionChoice> choices = precision.values();
    return std::find(choices.begin(), choices.end(), Precision::fp64) != choices.end();
}

bool differs_in_fp64(const SettledOptions& settled, const ResumePoint& point) {
    const ByRank<PrecisionChoice>& own = settled.options().precision;
    const auto stored = point.state.run.options.find(option_name(any_options().precision));
    return stored != point.state.run.options.end() &&
           is_fp64(run_options().read({*stored}).precision) != is_fp64(own);
}

// The first of these options whose value in the checkpoint differs; empty if there is none.
std::string differing_option(FixedWith with,
                             const SettledOptions& settled,
                             const ResumePoint& point) {
    if (with == FixedWith::run && differs_in_fp64(settled, point))
        return option_name(any_options().precision);
    for (const OptionSpec& spec : settled.table()) {
        if (spec.fixed_with != with)
            continue;
        const auto stored = point.state.run.options.find(spec.name);
        const std::string& own = settled.values().at(spec.name);
        if (stored == point.state.run.options.end()
                ? spec.name == option_name(any_options().corpus.data_weights) &&
                      !own.empty()  // earlier versions had none
                : !names_same_file(stored->second, own))
            return spec.name;
    }
    return "";
}

// Earlier versions had fewer options.
std::string stored_value(const ResumePoint& point, const std::string& name) {
    const auto stored = point.state.run.options.find(name);
    return stored != point.state.run.options.end() ? stored->second : "";
}

// Earlier versions knew only the loss.
std::string best_by_of(const RunIdentity& run) {
    const auto stored = run.options.find(option_name(any_options().trainer.best_by));
    return stored != run.options.end() ? stored->second : to_string(BestBy{});
}

std::string advice_on(const FixedOptions& group,
                      const std::string& name,
                      const ResumePoint& point) {
    const std::string other = "start another run";
    if (name == "precision")
        return "give fp64 to all ranks or to none, as that run did, or " + other +
               " that begins with its values: --save-dir OTHER --init-model " +
               point.folder.string() + ", where the task has that option";
    if (*group.reset == 0)
        return "give the same, or " + other;
    return "give the same, or " + other + " from it: --save-dir OTHER --restore-file " +
           point.folder.string() + " " + group.reset;
}

void check_pending(const TrainingProgress& progress, const ResumePoint& point, const Model& model) {
    for (const PendingUpdate& pending : progress.pending)
        if (pending.losses.size() != model.loss_terms().size())
            throw BadData((point.folder / TrainingState::file_name).string() + " tells " +
                              std::to_string(pending.losses.size()) +
                              " losses of an update that is not applied yet",
                          "the model has " + std::to_string(model.loss_terms().size()));
}

}  // namespace

ResumeCandidates::ResumeCandidates(const HostComm& world,
                                   const Options& options,
                                   const RunFolder* folder,
                                   VerifiedCheckpoint verified)
    : world_{world} {
    const std::string found = agree_on(world, [&] {
        check_options(options, folder);
        if (world.rank() != 0)
            return std::string();
        std::vector<fs::path> own = own_candidates(options, folder);
        if (own.empty() && options.resume == "must")
            throw MissingInput(folder->path().string() + " holds no checkpoint",
                               "--resume must asks for one",
                               "check --save-dir, or start with --resume auto");
        if (own.empty() && !options.restore_file.empty())
            return "given\n" + lines_of(given_candidates(options.restore_file));
        return "own\n" + lines_of(own);
    });
    std::vector<std::string> lines = split(world.broadcast(found, 0), '\n');
    are_own_ = lines.front() == "own";
    if (!are_own_ && options.reset_optimizer)
        optimizer_files_ = OptimizerFiles::left_out;
    for (std::size_t i = 1; i < lines.size(); ++i)
        if (!lines[i].empty())
            folders_.emplace_back(lines[i]);
    if (!verified.point || verified.found != folders_)
        return;
    const auto first = std::find(folders_.begin(), folders_.end(), verified.point->folder);
    tried_ = static_cast<std::size_t>(first - folders_.begin());
    verified_ = std::move(verified.point);
}

std::optional<ResumePoint> ResumeCandidates::next() {
    while (tried_ < folders_.size()) {
        const fs::path& folder = folders_[tried_++];
        if (verified_)
            return std::exchange(verified_, std::nullopt);
        try {
            return ResumePoint{folder, read(folder), are_own_};
        } catch (const AgreedError& error) {
            pass(error);
        }
    }
    if (folders_.empty())
        return std::nullopt;
    const std::string problem =
        "none of the " + std::to_string(folders_.size()) + " checkpoints can be used";
    if (could_not_read_)
        throw IoError(problem,
                      "the reasons are above",
                      "look at the file system on the hosts that they name, and start again");
    if (foreign_ == folders_.size())
        throw BadConfig(problem,
                        "they are of another model, as is said above",
                        "give these options as that run had them, or another --save-dir; there "
                        "--init-model " +
                            folders_.front().string() + " begins with its values");
    throw BadData(
        problem, "the reasons are above", "repair what is wrong, or start anew with --overwrite");
}

// What cannot be read now may be there a moment later: on NFS a handle may be stale, for one.
TrainingState ResumeCandidates::read(const fs::path& folder) const {
    constexpr std::chrono::seconds moment{1};
    try {
        return verified_state(world_, folder, optimizer_files_);
    } catch (const AgreedError& error) {
        if (error.code() != ExitCode::io)
            throw;
    }
    std::this_thread::sleep_for(moment);
    return verified_state(world_, folder, optimizer_files_);
}

void ResumeCandidates::pass_foreign(const std::string& difference) {
    ++foreign_;
    pass(BadConfig("it is of another model", difference));
}

void ResumeCandidates::pass(const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    could_not_read_ = could_not_read_ || (known != nullptr && known->code() == ExitCode::io);
    log::warn(folders_[tried_ - 1].string() + " cannot be used: " + message_of(error) +
              (tried_ < folders_.size() ? "; the one before it is tried" : ""));
}

void keep_batch_of_checkpoint(SettledOptions& settled, const ResumePoint& point) {
    if (!point.is_own && settled.options().reset_position)
        return;
    const Options& options = settled.options();
    const auto keep = [&](const std::int64_t& place) {
        const auto stored = point.state.run.options.find(settled.option_at(&place).name);
        if (place == 0 && stored != point.state.run.options.end())
            settled.settle(place, stored->second);
    };
    keep(options.corpus.block_length);
    keep(options.max_length);
    // A batch that is given anew replaces the one that was counted otherwise, too.
    if (options.batch_size > 0 || options.batch_tokens > 0)
        return;
    keep(options.batch_size);
    keep(options.batch_tokens);
    settled.settle(options.update_freq, 1);
}

std::string foreign_model(const SettledOptions& settled, const ResumePoint& point) {
    const std::string name = differing_option(FixedWith::run, settled, point);
    if (name.empty())
        return "";
    return "its --" + name + " is '" + stored_value(point, name) + "', this run's is '" +
           settled.values().at(name) + "'";
}

void check_same_run(const SettledOptions& settled, const ResumePoint& point) {
    for (const FixedOptions& group : fixed_options) {
        if (!point.is_own && group.is_reset != nullptr && settled.options().*group.is_reset)
            continue;
        const std::string name = differing_option(group.with, settled, point);
        if (!name.empty())
            throw BadConfig("--" + name + " is '" + settled.values().at(name) + "', " +
                                point.folder.string() + " was trained with '" +
                                stored_value(point, name) + "'",
                            "this option is fixed until the run ends",
                            advice_on(group, name, point));
    }
}

TrainingProgress continued_progress(const Options& options, const ResumePoint& point) {
    TrainingProgress progress = point.state.progress;
    progress.costs.clear();
    if (best_by_of(point.state.run) != to_string(options.trainer.best_by))
        progress.validations_since_best = 0;
    if (point.is_own)
        return progress;
    if (options.reset_optimizer && options.reset_lr_scheduler && options.reset_position)
        return {};
    if (options.reset_optimizer || options.reset_position)
        progress.pending.clear();  // these updates are computed again, of what is new
    if (options.reset_lr_scheduler) {
        progress.schedule_origin = progress.updates;
        progress.schedule_epochs = 0;
    }
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

namespace {

// Of what several stages hold, a checkpoint gives the first one its values.
void copy_from_first(Replica& replica, bool keeps_optimizer, const std::vector<GradientSet>& sums) {
    const SharedParameters& shared = replica.stage()->shared();
    shared.copy_from_first(replica.parameters(), keeps_optimizer ? &replica.optimizer() : nullptr);
    shared.copy_frozen_from_first(replica.model());
    for (const GradientSet& set : sums)
        shared.copy_from_first(replica.parameters(), set.flat);
}

}  // namespace

StartingPoint restore(const HostComm& world,
                      const RunSettings& settings,
                      const ResumePoint& point,
                      Replica& replica) {
    const Options& options = settings.options();
    const RunIdentity own = run_identity(settings, replica);
    const RunIdentity& saved = point.state.run;
    check_same_data(own, options, point);
    StartingPoint start{.progress = continued_progress(options, point), .continued = saved};
    start.sums = agree_on(world, [&] {
        check_pending(start.progress, point, replica.model());
        return replica.sets_for(start.progress.pending.size());
    });
    std::vector<CheckpointFile> files = replica.files_with(start.sums);
    const bool keeps_optimizer = point.is_own || !options.reset_optimizer;
    if (!keeps_optimizer)
        files.resize(1);  // the model's
    load_checkpoint(world, replica.communicator(), point.folder, files);
    if (keeps_optimizer)
        replica.optimizer().restored();
    if (replica.stage() != nullptr)
        copy_from_first(replica, keeps_optimizer, start.sums);
    if (!keeps_optimizer)
        replica.optimizer().begin(replica.parameters());
    const std::string note = note_on_data(own, options, point);
    if (!note.empty())
        log::warn(note);
    forget_other_validation(start.progress, own, point);
    if (point.is_own)
        start.held_update = start.progress.updates;
    if (!have_same_batches(own, saved))
        start.progress.allocations.clear();
    else if (have_same_ranks(own, saved)) {
        start.costs = point.state.progress.costs;
        start.progress.item_cost = point.state.progress.item_cost;  // whose units they are in
        start.replay = start.progress.allocations;
    }
    return start;
}

}  // namespace hetseq
