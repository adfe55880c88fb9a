#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/launcher.hpp"
#include "hetseq/util/process/signal_inbox.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/command_line/option_parser.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/host_name.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/train/watch/watchdog.hpp"
#include "hetseq/session/options/idle_options.hpp"
#include "hetseq/session/options/merged_values.hpp"
#include "hetseq/session/options/part_option_table.hpp"
#include "hetseq/session/pipeline/pipeline_report.hpp"
#include "hetseq/session/pipeline/recorded_layout.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_length.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/start_report.hpp"
#include "hetseq/session/starting_shares.hpp"
#include "hetseq/session/training.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/process.hpp"

#include "crew.hpp"
#include "dry_run_report.hpp"
#include "left_out_rank.hpp"
#include "mpi_leftovers.hpp"
#include "run_results.hpp"
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

// mpirun reports every exit code but 0 as an error of the rank.
void explain_exit_code(const Options& options) {
    if (options.stop_exit_code != 0 && was_started_by_mpirun())
        log::info("exit code " + std::to_string(options.stop_exit_code) +
                  " says that the run stopped as planned" +
                  (options.save_dir.empty() ? "" : " and that the same command continues it") +
                  "; mpirun reports it below as an error, which it is not");
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
        candidates.pass_foreign(difference);
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
    constexpr std::chrono::seconds moment{1};
    for (bool again = true; point;) {
        try {
            return restore(world, settings, *point, replica);
        } catch (const AgreedError& error) {
            // What cannot be read now may be there a moment later, as when it was verified.
            if (std::exchange(again, false) && error.code() == ExitCode::io) {
                std::this_thread::sleep_for(moment);
                continue;
            }
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

std::optional<RunFolder> run_folder_of(const HostComm& world, const Options& options) {
    if (options.save_dir.empty())
        return std::nullopt;
    return std::optional<RunFolder>(std::in_place,
                                    world,
                                    options.save_dir,
                                    existing_run(options),
                                    options.dry_run ? FolderUse::look : FolderUse::write);
}

// `point` is the end of the run: its models are put in place, and nothing is trained.
void leave_finished(const HostComm& world,
                    const RunFolder* folder,
                    const ResumePoint& point,
                    const TrainingProgress& progress,
                    Replica& replica) {
    log::info("nothing to do: " + point.folder.string() + " is the end of the run");
    if (folder == nullptr || !point.is_own)
        return;
    keep_best_model(world, *folder, progress);
    keep_final_model(world, *folder, point.folder, replica);
}

void say_continued(const Options& options, const ResumePoint& point, double reading_s) {
    log::info("continues from " + point.folder.string() + ", verified and read in " +
              format_number(reading_s, 3) + " s" +
              (point.is_own && !options.restore_file.empty()
                   ? "; --restore-file is for the start of a run alone"
                   : ""));
}

// `continued`: the checkpoint of the folder's own run that this start goes on from.
void begin_in_folder(const HostComm& world,
                     RunFolder& folder,
                     const ResumePoint* continued,
                     const TrainingProgress& progress,
                     const RunSettings& settings,
                     const Replica& replica) {
    open_folder(world,
                folder,
                continued != nullptr ? std::optional(progress.updates) : std::nullopt,
                settings,
                replica.model());
    if (continued != nullptr)
        keep_best_model(world, folder, progress);
}

// An attempt to train came to its end, or is to be made again by some of its ranks.
struct Attempt {
    int code = 0;
    std::optional<SmallerCrew> smaller = {};
};

Attempt train_ranks_of(const CommandContext& context, Crew crew, double start_seconds) {
    const HostComm& world = context.world;
    SettledOptions& settled = crew.options;
    agree_on(world, [&] { check_encoding(settled.values()); });
    std::optional<RunFolder> run_folder = run_folder_of(world, settled.options());
    const RunFolder* const folder = run_folder ? &*run_folder : nullptr;
    double reading_s = crew.verified.seconds;
    ResumeCandidates candidates(world, settled.options(), folder, std::move(crew.verified));
    const double verification = monotonic_seconds();
    std::optional<ResumePoint> point = newest_of_this_model(candidates, settled);
    reading_s += monotonic_seconds() - verification;
    if (point)
        keep_batch_of_checkpoint(settled, *point);
    RunSettings settings = set_up_ranks(
        world, std::move(settled), context.parts, crew.before ? &*crew.before : nullptr);
    if (point)
        check_same_run(settings, *point);

    const VerifiedCheckpoint verified{point, candidates.found(), reading_s};
    if (auto smaller = choose_crew(context, crew, settings, verified, folder))
        return {.smaller = std::move(smaller)};
    const LayoutChoice& choice = crew.choice;
    const std::optional<PipelineLayout>& layout = choice.pipelines;
    record_layout(choice, settings);
    settings.lends_to_checkpoints = choice.lends_to_checkpoints;
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
    DryRunReport plan = dry_run_report(replica, length, point, start.progress.updates);
    plan.is_finished = point && is_finished(settings.options(), length, start.progress);
    if (plan.is_finished && settings.options().dry_run)
        return {.code = say_dry_run(world, settings, plan)};
    if (plan.is_finished) {
        leave_finished(world, folder, *point, start.progress, replica);
        return {};
    }
    Schedule schedule = make_schedule(context.parts, settings.options().parts, length);
    if (const std::string warning = warning_of_no_rate(schedule, length, start.progress);
        !warning.empty())
        log::warn(warning);
    StartingShares shares = make_starting_shares(world, settings, replica, start);
    if (!layout)
        replica.memory().note_activations(world, activations_mb(shares.plan), PeakMemory{}.mb());
    if (auto smaller = without_useless_ranks(
            world, crew, settings, {point, candidates.found(), reading_s}, replica, shares.plan))
        return {.smaller = std::move(smaller)};
    const TrainingProgress progress = start.progress;
    RunListener* const listener = context.parts.listener.get();
    Training training({world, settings, std::move(schedule), folder, replica, listener},
                      length,
                      std::move(start),
                      std::move(shares));
    say_start(context, settings, replica, training, choice);
    if (settings.options().dry_run)
        return {.code = try_out(context, settings, replica, training, choice, std::move(plan))};
    if (point)
        say_continued(settings.options(), *point, reading_s);
    if (run_folder)
        begin_in_folder(world,
                        *run_folder,
                        point && point->is_own ? &*point : nullptr,
                        progress,
                        settings,
                        replica);
    return {.code =
                run_training(context, settings, replica, training, folder, choice, start_seconds)};
}

int train_with(const CommandContext& context, Crew crew, double start_seconds);

// Trains on these ranks alone; the others wait for their end, and have the same exit code. From
// here on the log numbers the first ones from 0, and the others after them.
int train_without_the_others(const CommandContext& context,
                             SmallerCrew smaller,
                             double start_seconds) {
    const HostComm& world = context.world;
    const std::vector<int>& ranks = smaller.ranks;
    const bool works = std::binary_search(ranks.begin(), ranks.end(), world.rank());
    HostComm own = world.split(works ? 1 : 0);
    own.become_job();
    const HostComm meeting = own.duplicate();
    log::set_identity(
        own.rank() + (works ? 0 : static_cast<int>(ranks.size())), world.size(), host_name());
    const std::string save_dir = smaller.crew.options.options().save_dir;
    const double stall_timeout = smaller.crew.options.options().stall_timeout;
    double code = 0;
    if (works) {
        const int failure = run_or_end(meeting, [&] {
            const Watchdog watchdog(*context.environment, own, {.stall_timeout = stall_timeout});
            const CommandContext context_of_own{
                context.environment, own, meeting, context.parts, nullptr, context.words};
            code = train_with(context_of_own, std::move(smaller.crew), start_seconds);
        });
        code = failure != 0 ? failure : code;
    }
    HostRequest end = world.start_all_reduce({&code, 1}, ReduceOp::max);
    if (!works)
        wait_for_the_others(end, save_dir);
    end.wait();
    return static_cast<int>(code);
}

int train_with(const CommandContext& context, Crew crew, double start_seconds) {
    Attempt attempt = train_ranks_of(context, std::move(crew), start_seconds);
    return attempt.smaller
               ? train_without_the_others(context, std::move(*attempt.smaller), start_seconds)
               : attempt.code;
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
    const int code = train_with(context, {.options = std::move(settled)}, start_seconds);
    context.watchdog->change(stall_timeout, Judge::silence);
    return code;
}

}  // namespace hetseq
