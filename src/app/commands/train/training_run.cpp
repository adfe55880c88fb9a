#include "training_run.hpp"

#include <cstdio>
#include <string>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/launcher.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/comm/mpi/mpi_environment.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/record/summary.hpp"
#include "hetseq/session/pipeline/pipeline_report.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/start_report.hpp"
#include "hetseq/session/training.hpp"
#include "hetseq/app/commands.hpp"
#include "hetseq/app/failure.hpp"

#include "run_results.hpp"
#include "told_events.hpp"

namespace hetseq {

namespace {

// Only rank 0 says it: the names may be divided by the files that it sees.
std::string weights_report(const RunSettings& settings, Replica& replica) {
    return replica.feed().corpus().weights_report(names_in_spec(settings.options().data));
}

// mpirun reports every exit code but 0 as an error of the rank.
void explain_exit_code(const Options& options) {
    if (options.stop_exit_code != 0 && was_started_by_mpirun())
        log::info("exit code " + std::to_string(options.stop_exit_code) +
                  " says that the run stopped as planned" +
                  (options.save_dir.empty() ? "" : " and that the same command continues it") +
                  "; mpirun reports it below as an error, which it is not");
}

}  // namespace

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

int say_dry_run(const HostComm& world, const RunSettings& settings, const DryRunReport& report) {
    log::info(dry_run_text(report, settings.topology));
    if (settings.options().json && world.rank() == 0)
        std::fputs(dry_run_json(report, settings).c_str(), stdout);
    return 0;
}

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

}  // namespace hetseq
