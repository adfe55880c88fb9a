#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/files/atomic_file.hpp"
#include "hetseq/util/files/file_text.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/launcher.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host/rank_ranges.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/model/files/model_file.hpp"
#include "hetseq/train/checkpoint/whole_model.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/train/watch/watchdog.hpp"
#include "hetseq/session/options/config_file_values.hpp"
#include "hetseq/session/options/idle_options.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/session/pipeline/choose_layout.hpp"
#include "hetseq/session/pipeline/pipeline_report.hpp"
#include "hetseq/session/pipeline/recorded_layout.hpp"
#include "hetseq/session/ranks/slow_devices.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_length.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/starting_shares.hpp"
#include "hetseq/session/training.hpp"
#include "hetseq/session/working_ranks.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/process.hpp"

#include "dry_run_report.hpp"
#include "left_out_rank.hpp"
#include "mpi_leftovers.hpp"
#include "told_events.hpp"

namespace hetseq {

namespace {

// By rank; 0: not measured.
std::vector<double> activations_mb(const SharePlan& shares) {
    std::vector<double> mb;
    for (const StepCost& cost : shares.costs())
        mb.push_back(cost.activations_mb);
    return mb;
}

// Only rank 0 says it: the names may be divided by the files that it sees.
std::string weights_report(const RunSettings& settings, Replica& replica) {
    return replica.feed().corpus().weights_report(names_in_spec(settings.options().data));
}

void say_start(const CommandContext& context,
               const RunSettings& settings,
               Replica& replica,
               Training& training,
               const LayoutChoice& choice) {
    const ThreadSupport threads = context.environment->thread_support();
    if (threads != ThreadSupport::multiple)
        log::warn(std::string("MPI gives ") + to_string(threads) +
                  ", not MPI_THREAD_MULTIPLE: data are read and gradients reduced without overlap");
    log::info("start\n" + MpiEnvironment::library_version() + ", " + to_string(threads) + "\n" +
              start_report(settings, training.shares(), replica.plan()) + compared_report(choice) +
              pipeline_report(replica, settings) + weights_report(settings, replica) +
              count_text(replica.parameter_count(), "parameter") + ", " +
              count_text(replica.plan().samples(), "sample") + ", " +
              count_text(replica.plan().batches_per_epoch(), "update") + " an epoch, " +
              count_text(training.length().updates, "update") + " to run\nmemory [MiB]\n" +
              replica.memory().table(settings));
}

// Collective. Rank 0 writes.
void save_final_model(const HostComm& world, const RunFolder& folder, const Replica& replica) {
    const auto require_lease = [&] { folder.require_lease(); };
    if (replica.stage() != nullptr)
        return save_whole_model(
            world, replica.checkpoint_files().front(), folder.model(), require_lease);
    agree_on(world, [&] {
        if (world.rank() == 0)
            save_model(folder.model(), replica.model(), require_lease);
    });
}

void write_results(const RunFolder& folder, const Summary& summary, const TrainerReport& report) {
    folder.require_lease();
    write_atomically(folder.summary(), summary.json(report));
    folder.look_after_parts();
    folder.report_removed_parts();
}

// Collective. A run that was killed behind its last checkpoint lacks the model that it had come to.
void keep_final_model(const HostComm& world, const RunFolder& folder, Replica& replica) {
    const bool is_there = world.broadcast(
        std::int64_t{world.rank() == 0 && std::filesystem::exists(folder.model())}, 0);
    replica.use_average();
    if (!is_there)
        save_final_model(world, folder, replica);
}

// mpirun reports every exit code but 0 as an error of the rank.
void explain_exit_code(const Options& options) {
    if (options.stop_exit_code != 0 && was_started_by_mpirun())
        log::info("exit code " + std::to_string(options.stop_exit_code) +
                  " says that the run stopped as planned" +
                  (options.save_dir.empty() ? "" : " and that the same command continues it") +
                  "; mpirun reports it below as an error, which it is not");
}

// The last line of a run: where what it has trained lies.
void say_where_the_model_is(const RunFolder* folder, const TrainerReport& report, bool stopped) {
    if (folder == nullptr)
        log::info("the model was not kept: there is no --save-dir");
    else if (stopped)
        log::info("checkpoint: " + folder->checkpoints().of_update(report.updates).string() +
                  "; the same command continues the run");
    else
        log::info("model: " + folder->model().string() +
                  (report.best_valid && std::filesystem::exists(folder->best_model())
                       ? "; best by validation (update " + std::to_string(report.best_update) +
                             "): " + folder->best_model().string()
                       : ""));
}

// Collective. A folder of checkpoints alone lacks the best model; the checkpoint of its update
// holds it.
void keep_best_model(const HostComm& world,
                     const RunFolder& folder,
                     const TrainingProgress& progress) {
    agree_on(world, [&] {
        if (world.rank() != 0 || !progress.best_valid ||
            std::filesystem::exists(folder.best_model()))
            return;
        const auto held =
            folder.checkpoints().of_update(progress.best_update) / folder.model().filename();
        folder.require_lease();
        if (const auto bytes = std::filesystem::exists(held) ? read_file_text(held) : std::nullopt)
            write_atomically(folder.best_model(), *bytes);
        else
            log::warn(folder.best_model().string() +
                      " is not there, and no checkpoint holds the best model, of update " +
                      std::to_string(progress.best_update) + ": the next better one is kept again");
    });
}

// `continued`: the update of the folder's own checkpoint.
void open_folder(const HostComm& world,
                 RunFolder& folder,
                 std::optional<std::int64_t> continued,
                 const RunSettings& settings,
                 const Model& model) {
    const std::string text =
        config_text(config_file_values(settings.values(), settings.table()), settings.table());
    if (continued)
        folder.resume(world, *continued, text, model.companion_files());
    else
        folder.begin(world, text, model.companion_files());
}

// Everything that needs the training's objects, including the end after a failure.
int run_training(const CommandContext& context,
                 const RunSettings& settings,
                 Replica& replica,
                 Training& training,
                 const RunFolder* folder,
                 const LayoutChoice& choice,
                 double start_seconds) {
    const HostComm& world = context.world;
    bool stopped = false;
    const int code = run_or_end(context.meeting, [&] {
        tell_start(context, settings, replica, training, folder);
        const TrainerReport report = training.run(start_seconds);
        Summary summary = summarise(world,
                                    settings.topology,
                                    settings.precisions,
                                    training.shares(),
                                    training.shares().full_batch(replica.plan()),
                                    report,
                                    start_seconds);
        summary.is_exact = replica.model().is_exact();
        summary.reduce_precision = settings.options().reduce_precision;
        summary.shard = settings.options().shard;
        describe_pipeline(world, replica, report, summary);
        describe_layouts(choice, summary);
        if (summary.status == "finished")
            replica.use_average();
        if (folder != nullptr && summary.status == "finished")
            save_final_model(world, *folder, replica);
        agree_on(world, [&] {
            if (folder != nullptr && world.rank() == 0)
                write_results(*folder, summary, report);
        });
        tell_end(context, summary.json(report));
        log::info(summary.text(report));
        if (settings.options().json && world.rank() == 0)
            std::fputs(summary.json(report).c_str(), stdout);
        stopped = !report.is_finished();
        if (stopped)
            explain_exit_code(settings.options());
        say_where_the_model_is(folder, report, stopped);
    });
    return code == 0 && stopped ? static_cast<int>(settings.options().stop_exit_code) : code;
}

DryRunReport dry_run_report(const Replica& replica,
                            const RunLength& length,
                            const std::optional<ResumePoint>& point,
                            std::int64_t updates_done) {
    return {.checkpoint = point ? point->folder.string() : "",
            .done = updates_done,
            .updates = length.updates,
            .updates_per_epoch = replica.plan().batches_per_epoch(),
            .samples = replica.plan().samples(),
            .parameters = replica.parameter_count()};
}

int say_dry_run(const HostComm& world, const RunSettings& settings, const DryRunReport& report) {
    log::info(dry_run_text(report, settings.topology));
    if (settings.options().json && world.rank() == 0)
        std::fputs(dry_run_json(report, settings).c_str(), stdout);
    return 0;
}

// Tries some updates, and says what the run would do.
int try_out(const CommandContext& context,
            const RunSettings& settings,
            const Replica& replica,
            Training& training,
            const LayoutChoice& choice,
            DryRunReport plan) {
    return run_or_end(context.meeting, [&] {
        for (int rank = 0; rank < context.world.size(); ++rank)
            plan.memory.push_back(replica.memory().terms(rank));
        const double begin = monotonic_seconds();
        const TrainerReport report = training.try_out();
        plan.tried = report.times.updates();
        plan.summary = summarise(context.world,
                                 settings.topology,
                                 settings.precisions,
                                 training.shares(),
                                 training.shares().full_batch(replica.plan()),
                                 report,
                                 begin);
        describe_pipeline(context.world, replica, report, plan.summary);
        describe_layouts(choice, plan.summary);
        say_dry_run(context.world, settings, plan);
    });
}

// The newest checkpoint of this run's model; empty if there is none.
std::optional<ResumePoint> newest_of_this_model(ResumeCandidates& candidates,
                                                const SettledOptions& settled) {
    std::optional<ResumePoint> point = candidates.next();
    while (point && point->is_own) {
        const std::string difference = foreign_model(settled, *point);
        if (difference.empty())
            break;
        candidates.pass(BadConfig("it is of another model", difference));
        point = candidates.next();
    }
    return point;
}

// Takes the newest checkpoint that fits, from `point` on, into `replica`.
StartingPoint restore_newest(const HostComm& world,
                             const RunSettings& settings,
                             ResumeCandidates& candidates,
                             std::optional<ResumePoint>& point,
                             Replica& replica) {
    while (point) {
        try {
            return restore(world, settings, *point, replica);
        } catch (const AgreedError& error) {
            candidates.pass(error);
            point = candidates.next();
        }
    }
    return {};
}

ExistingRun existing_run(const Options& options) {
    if (options.overwrite)
        return ExistingRun::overwrite;
    return options.resume == "never" ? ExistingRun::refuse : ExistingRun::resume;
}

// Where the run's earlier starts are told of; empty: there are none.
std::filesystem::path earlier_starts(const RunFolder* folder, const Options& options) {
    return folder == nullptr || options.overwrite ? "" : folder->history();
}

// Which ranks an attempt to train has, and so what it may still leave out.
enum class Staff {
    job,     // all of the job
    well,    // without those that an earlier start found slow
    working  // without those that would be of no use, too
};

// How some ranks train.
struct Crew {
    Staff staff = Staff::job;
    std::optional<RankInfo> before = {};  // this rank, before others were left out
    SettledOptions options = {};
    LayoutChoice choice = {};
};

// An attempt to train came to this.
struct Attempt {
    int code = 0;
    std::vector<int> ranks = {};  // to start again on these alone; none: it came to its end
    Crew crew = {};               // which they are then
};

Attempt ended(int code) {
    return {.code = code};
}

// To start again on `ranks` alone, whose numbers become those among them. `rank`: this one.
Attempt again_on(const std::vector<int>& ranks,
                 Staff staff,
                 const RunSettings& settings,
                 int rank,
                 LayoutChoice choice = {}) {
    return {.ranks = ranks,
            .crew = {.staff = staff,
                     .before = settings.topology.rank(rank),
                     .options = options_on(settings, ranks),
                     .choice = std::move(choice)}};
}

Attempt on_ranks_of(LayoutChoice choice, const RunSettings& settings, int rank) {
    const std::vector<int> ranks = choice.ranks;
    if (choice.pipelines)
        choice.pipelines->renumber(ranks);
    std::vector<int> others;
    for (const RankInfo& info : settings.topology.ranks)
        if (!std::binary_search(ranks.begin(), ranks.end(), info.rank))
            others.push_back(info.rank);
    if (!others.empty())
        log::info("left out: " + name_ranks(others) +
                  ", for which the layout has no use; the others are numbered anew, from 0 on");
    const bool shards_state = choice.shards_state;
    Attempt again = again_on(ranks, Staff::working, settings, rank, std::move(choice));
    if (shards_state)
        again.crew.options.settle(again.crew.options.options().shard, "optimizer");
    return again;
}

// Collective. As the run's checkpoint has recorded it, or as it is found best now.
LayoutChoice chosen_layout(const CommandContext& context,
                           const RunSettings& settings,
                           const std::optional<ResumePoint>& point,
                           bool saves) {
    if (point && point->is_own)
        if (auto recorded = recorded_layout(settings, point->state.run))
            return std::move(*recorded);
    return choose_layout(*context.environment, context.world, settings, context.parts, saves);
}

Attempt train_ranks_of(const CommandContext& context, Crew crew, double start_seconds) {
    const HostComm& world = context.world;
    SettledOptions& settled = crew.options;
    LayoutChoice& choice = crew.choice;
    std::optional<RunFolder> run_folder;
    if (!settled.options().save_dir.empty())
        run_folder.emplace(world,
                           settled.options().save_dir,
                           existing_run(settled.options()),
                           settled.options().dry_run ? FolderUse::look : FolderUse::write);
    const RunFolder* const folder = run_folder ? &*run_folder : nullptr;
    ResumeCandidates candidates(world, settled.options(), folder);
    const double verification = monotonic_seconds();
    std::optional<ResumePoint> point = newest_of_this_model(candidates, settled);
    double reading_s = monotonic_seconds() - verification;
    if (point)
        keep_batch_of_checkpoint(settled, *point);
    RunSettings settings = set_up_ranks(
        world, std::move(settled), context.parts, crew.before ? &*crew.before : nullptr);
    if (point)
        check_same_run(settings, *point);

    if (crew.staff == Staff::job && !context.parts.is_called_by_script) {
        const std::vector<int> ranks = ranks_with_capacity(
            settings,
            ranks_not_dropped(world, settings, earlier_starts(folder, settings.options())));
        if (std::ssize(ranks) < world.size())
            return again_on(ranks, Staff::well, settings, world.rank());
    }
    const bool may_choose = crew.staff != Staff::working;
    if (may_choose) {
        choice = chosen_layout(context, settings, point, folder != nullptr);
        if (std::ssize(choice.ranks) < world.size() || choice.shards_state)
            return on_ranks_of(std::move(choice), settings, world.rank());
    } else {
        settings.job_ranks = choice.ranks;
    }
    const std::optional<PipelineLayout>& layout = choice.pipelines;
    record_layout(layout, settings);
    Replica replica(*context.environment,
                    world,
                    settings,
                    context.parts,
                    folder,
                    layout ? &*layout : nullptr,
                    point ? FirstValues::zero : FirstValues::drawn);
    replica.identify_data(point ? &point->state.run : nullptr);
    settings.settle(settings.options().corpus.block_length, replica.feed().corpus().block_length());
    const double loading = monotonic_seconds();
    StartingPoint start = restore_newest(world, settings, candidates, point, replica);
    reading_s += monotonic_seconds() - loading;
    const RunLength length =
        run_length(settings.options(), replica.plan().batches_per_epoch(), start);
    const std::int64_t updates = start.progress.updates;
    DryRunReport plan = dry_run_report(replica, length, point, updates);
    plan.is_finished = point && is_finished(settings.options(), length, start.progress);
    if (plan.is_finished && settings.options().dry_run)
        return ended(say_dry_run(world, settings, plan));
    if (plan.is_finished) {
        log::info("nothing to do: " + point->folder.string() + " is the end of the run");
        if (folder != nullptr && point->is_own)
            keep_final_model(world, *folder, replica);
        return {};
    }
    Schedule schedule = make_schedule(context.parts, settings.options().parts, length);
    StartingShares shares = make_starting_shares(world, settings, replica, start);
    if (!layout)
        replica.memory().note_activations(world, activations_mb(shares.plan), PeakMemory{}.mb());
    if (may_choose && !layout && !replica.model().initialises_itself()) {
        const std::vector<int> ranks = working_ranks(world, settings, replica, shares.plan);
        if (std::ssize(ranks) < world.size())
            return again_on(ranks, Staff::working, settings, world.rank(), {.ranks = ranks});
    }
    const TrainingProgress progress = start.progress;
    RunListener* const listener = context.parts.listener.get();
    Training training({world, settings, std::move(schedule), folder, replica, listener},
                      length,
                      std::move(start),
                      std::move(shares));
    say_start(context, settings, replica, training, choice);
    if (settings.options().dry_run)
        return ended(try_out(context, settings, replica, training, choice, std::move(plan)));
    if (point)
        log::info("continues from " + point->folder.string() + ", verified and read in " +
                  format_number(reading_s, 3) + " s" +
                  (point->is_own && !settings.options().restore_file.empty()
                       ? "; --restore-file is for the start of a run alone"
                       : ""));
    if (run_folder)
        open_folder(world,
                    *run_folder,
                    point && point->is_own ? std::optional(updates) : std::nullopt,
                    settings,
                    replica.model());
    if (run_folder && point && point->is_own)
        keep_best_model(world, *run_folder, progress);
    return ended(run_training(context, settings, replica, training, folder, choice, start_seconds));
}

int train_on(const CommandContext& context, Crew crew, double start_seconds);

// Trains on the attempt's ranks alone; the others wait for their end, and have the same exit code.
// From here on the log numbers the first ones from 0, and the others after them.
int train_without_the_others(const CommandContext& context, Attempt attempt, double start_seconds) {
    const HostComm& world = context.world;
    const bool works = std::count(attempt.ranks.begin(), attempt.ranks.end(), world.rank()) > 0;
    const HostComm own = world.split(works ? 1 : 0);
    const HostComm meeting = own.duplicate();
    log::set_identity(own.rank() + (works ? 0 : static_cast<int>(attempt.ranks.size())),
                      world.size(),
                      host_name());
    const std::string save_dir = attempt.crew.options.options().save_dir;
    const double stall_timeout = attempt.crew.options.options().stall_timeout;
    double code = 0;
    if (works) {
        const int failure = run_or_end(meeting, [&] {
            const Watchdog watchdog(*context.environment, own, {.stall_timeout = stall_timeout});
            const CommandContext context_of_own{
                context.environment, own, meeting, context.parts, nullptr, context.words};
            code = train_on(context_of_own, std::move(attempt.crew), start_seconds);
        });
        code = failure != 0 ? failure : code;
    }
    HostRequest end = world.start_all_reduce({&code, 1}, ReduceOp::max);
    if (!works)
        wait_for_the_others(end, save_dir);
    end.wait();
    return static_cast<int>(code);
}

int train_on(const CommandContext& context, Crew crew, double start_seconds) {
    Attempt attempt = train_ranks_of(context, std::move(crew), start_seconds);
    return attempt.ranks.empty()
               ? attempt.code
               : train_without_the_others(context, std::move(attempt), start_seconds);
}

}  // namespace

int train_command(const CommandContext& context) {
    const double start_seconds = process_start_seconds();
    const HostComm& world = context.world;
    const GivenOptions given =
        agree_on(world, [&] { return given_options(context.words, option_table(context.parts)); });
    SettledOptions settled = settle_options(world, given, context.parts);
    for (const std::string& line : idle_options(settled.options()))
        log::warn(line);
    if (context.parts.is_called_by_script && settled.options().drop_below > 0)
        log::warn(
            "--drop-below has no effect (hetseq.train returns the model on each rank): train the "
            "task by 'hetseq train FILE.py:TASK'");
    clear_mpi_leftovers();
    signal_inbox::choose(settled.options().stop_signals, settled.options().checkpoint_signals);
    const double stall_timeout = settled.options().stall_timeout;
    context.watchdog->change(stall_timeout, Judge::work_and_silence);
    const int code = train_on(context, {.options = std::move(settled)}, start_seconds);
    context.watchdog->change(stall_timeout, Judge::silence);
    return code;
}

}  // namespace hetseq
