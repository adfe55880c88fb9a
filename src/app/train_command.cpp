#include <cstdio>
#include <optional>
#include <utility>

#include "hetseq/util/atomic_file.hpp"
#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/signal_inbox.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi_environment.hpp"
#include "hetseq/model/model_file.hpp"
#include "hetseq/train/run_folder.hpp"
#include "hetseq/train/summary.hpp"
#include "hetseq/train/watchdog.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"
#include "hetseq/app/option_parser.hpp"
#include "hetseq/app/process.hpp"
#include "hetseq/app/rank_setup.hpp"
#include "hetseq/app/resume.hpp"
#include "hetseq/app/training.hpp"

namespace hetseq {

namespace {

void say_start(const CommandContext& context, const RankSetup& setup, Training& training) {
    const ThreadSupport threads = context.environment->thread_support();
    if (threads != ThreadSupport::multiple)
        log::warn(std::string("MPI gives ") + to_string(threads) +
                  ", not MPI_THREAD_MULTIPLE: data are read and gradients reduced without overlap");
    log::info("start\n" + MpiEnvironment::library_version() + ", " + to_string(threads) + "\n" +
              start_report(setup, training.shares()) + std::to_string(training.parameter_count()) +
              " parameters, " + std::to_string(training.samples()) + " samples, " +
              std::to_string(training.updates_per_epoch()) + " updates an epoch, " +
              std::to_string(training.updates()) + " updates to run");
}

void write_results(const RunFolder& folder,
                   const Summary& summary,
                   const TrainerReport& report,
                   const Model& model) {
    if (summary.status == "finished")
        save_model(folder.model(), model);
    write_atomically(folder.summary(), summary.json(report));
}

// All that needs the training's objects alive, the end after a failure included.
int run_training(const CommandContext& context,
                 const RankSetup& setup,
                 Training& training,
                 const RunFolder* folder,
                 double start_seconds) {
    const HostComm& world = context.world;
    bool stopped = false;
    const int code = run_or_end(context.meeting, [&] {
        const TrainerReport report = training.run(start_seconds);
        const Summary summary = summarise(
            world, setup.topology, training.shares(), setup.batch_size, report, start_seconds);
        agree_on(world, [&] {
            if (folder != nullptr && world.rank() == 0)
                write_results(*folder, summary, report, training.model());
        });
        log::info(summary.text(report));
        if (setup.options.json && world.rank() == 0)
            std::fputs(summary.json(report).c_str(), stdout);
        stopped = report.stop != StopReason::none && report.stop != StopReason::patience;
    });
    return code == 0 && stopped ? static_cast<int>(setup.options.stop_exit_code) : code;
}

// The newest checkpoint that fits, into `training`; nothing where there is none.
void restore(ResumeCandidates& candidates, std::optional<ResumePoint>& point, Training& training) {
    while (point) {
        try {
            training.restore(*point);
            return;
        } catch (const AgreedError& error) {
            candidates.pass(error);
            point = candidates.next();
        }
    }
}

ExistingRun existing_run(const Options& options) {
    if (options.overwrite)
        return ExistingRun::overwrite;
    return options.resume == "never" ? ExistingRun::refuse : ExistingRun::resume;
}

}  // namespace

int train_command(const CommandContext& context) {
    const double start_seconds = process_start_seconds();
    const HostComm& world = context.world;
    const GivenOptions given = agree_on(world, [&] { return parse_with_config(context.words); });
    SettledOptions settled = settle_options(world, given, context.parts);
    const Watchdog watchdog(
        *context.environment, world, {.stall_timeout = settled.options.stall_timeout});
    signal_inbox::choose(settled.options.stop_signals, settled.options.checkpoint_signals);
    std::optional<RunFolder> folder;
    if (!settled.options.save_dir.empty())
        folder.emplace(world, settled.options.save_dir, existing_run(settled.options));
    ResumeCandidates candidates(world, settled.options, folder ? &*folder : nullptr);
    const double verification = monotonic_seconds();
    std::optional<ResumePoint> point = candidates.next();
    while (point && point->is_own) {
        const std::string difference = foreign_model(settled.values, *point);
        if (difference.empty())
            break;
        candidates.pass(BadConfig("it is of another model", difference));
        point = candidates.next();
    }
    double reading_s = monotonic_seconds() - verification;
    if (point)
        keep_settled(settled, *point);
    RankSetup setup = set_up_ranks(world, std::move(settled));
    if (point)
        check_same_run(setup.values, setup.options, *point);

    Training training(*context.environment,
                      world,
                      setup,
                      context.parts,
                      folder ? &*folder : nullptr,
                      point ? &*point : nullptr);
    setup.values["block-length"] = std::to_string(training.block_length());
    const double loading = monotonic_seconds();
    restore(candidates, point, training);
    reading_s += monotonic_seconds() - loading;
    if (point && training.is_finished()) {
        log::info("nothing to do: " + point->folder.string() + " is the end of the run");
        return 0;
    }
    say_start(context, setup, training);
    if (setup.options.dry_run) {
        log::info("dry run: everything was checked, nothing is trained");
        return 0;
    }
    if (point)
        log::info("continues from " + point->folder.string() + ", verified and read in " +
                  format_number(reading_s, 3) + " s");
    if (folder && point && point->is_own)
        folder->resume(world, training.progress().updates, config_text(setup.values));
    else if (folder)
        folder->begin(world, config_text(setup.values), training.model().config_json());
    return run_training(context, setup, training, folder ? &*folder : nullptr, start_seconds);
}

}  // namespace hetseq
