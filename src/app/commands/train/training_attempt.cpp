#include "training_attempt.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/shares/peak_memory.hpp"
#include "hetseq/session/pipeline/recorded_layout.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_length.hpp"
#include "hetseq/session/run_settings.hpp"
#include "hetseq/session/starting_shares.hpp"
#include "hetseq/session/training.hpp"
#include "hetseq/app/commands.hpp"

#include "run_results.hpp"
#include "training_run.hpp"

namespace hetseq {

namespace {

// By rank; 0: not measured.
std::vector<double> activations_mb(const SharePlan& shares) {
    std::vector<double> mb;
    for (const StepCost& cost : shares.costs())
        mb.push_back(cost.activations_mb);
    return mb;
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

// Ranks that try to train, with what they have found before there is a replica.
class TrainingAttempt {
public:
    TrainingAttempt(const CommandContext& context, Crew crew)
        : context_{context},
          world_{context.world},
          crew_{std::move(crew)},
          run_folder_{run_folder_of(world_, crew_.options.options())},
          reading_s_{crew_.verified.seconds},
          candidates_{world_, crew_.options.options(), folder(), std::move(crew_.verified)},
          point_{newest_checkpoint()},
          settings_{set_up()} {}

    Attempt run(double start_seconds) {
        if (auto smaller = choose_crew(context_, crew_, settings_, checkpoint(), folder()))
            return {.smaller = std::move(smaller)};
        record_layout(crew_.choice, settings_);
        settings_.lends_to_checkpoints = crew_.choice.lends_to_checkpoints;
        const std::optional<PipelineLayout>& layout = crew_.choice.pipelines;
        Replica replica(*context_.environment,
                        world_,
                        settings_,
                        context_.parts,
                        folder(),
                        layout ? &*layout : nullptr,
                        point_ ? FirstValues::zero : FirstValues::drawn);
        replica.identify_data(point_ ? &point_->state.run : nullptr);
        settings_.settle(settings_.options().corpus.block_length,
                         replica.feed().corpus().block_length());
        StartingPoint start = restored(replica);
        const RunLength length =
            run_length(settings_.options(), replica.plan().batches_per_epoch(), start);
        DryRunReport plan = dry_run_report(replica, length, point_, start.progress.updates);
        plan.is_finished = point_ && is_finished(settings_.options(), length, start.progress);
        if (!plan.is_finished)
            return train(replica, length, std::move(start), std::move(plan), start_seconds);
        if (settings_.options().dry_run)
            return {.code = say_dry_run(world_, settings_, plan)};
        leave_finished(world_, folder(), *point_, start.progress, replica);
        return {};
    }

private:
    std::optional<ResumePoint> newest_checkpoint() {
        const double begin = monotonic_seconds();
        std::optional<ResumePoint> point = newest_of_this_model(candidates_, crew_.options);
        reading_s_ += monotonic_seconds() - begin;
        if (point)
            keep_batch_of_checkpoint(crew_.options, *point);
        return point;
    }

    RunSettings set_up() {
        RunSettings settings = set_up_ranks(world_,
                                            std::move(crew_.options),
                                            context_.parts,
                                            crew_.before ? &*crew_.before : nullptr);
        if (point_)
            check_same_run(settings, *point_);
        return settings;
    }

    StartingPoint restored(Replica& replica) {
        const double begin = monotonic_seconds();
        StartingPoint start = restore_newest(world_, settings_, candidates_, point_, replica);
        reading_s_ += monotonic_seconds() - begin;
        return start;
    }

    Attempt train(Replica& replica,
                  const RunLength& length,
                  StartingPoint start,
                  DryRunReport plan,
                  double start_seconds) {
        Schedule schedule = make_schedule(context_.parts, settings_.options().parts, length);
        if (const std::string warning = warning_of_no_rate(schedule, length, start.progress);
            !warning.empty())
            log::warn(warning);
        StartingShares shares = make_starting_shares(world_, settings_, replica, start);
        if (!crew_.choice.pipelines)
            replica.memory().note_activations(
                world_, activations_mb(shares.plan), PeakMemory{}.mb());
        if (auto smaller =
                without_useless_ranks(world_, crew_, settings_, checkpoint(), replica, shares.plan))
            return {.smaller = std::move(smaller)};
        const TrainingProgress progress = start.progress;
        RunListener* const listener = context_.parts.listener.get();
        Training training({world_, settings_, std::move(schedule), folder(), replica, listener},
                          length,
                          std::move(start),
                          std::move(shares));
        say_start(context_, settings_, replica, training, crew_.choice);
        if (settings_.options().dry_run)
            return {.code = try_out(
                        context_, settings_, replica, training, crew_.choice, std::move(plan))};
        begin_run(progress, replica);
        return {.code = run_training(
                    context_, settings_, replica, training, folder(), crew_.choice, start_seconds)};
    }

    void begin_run(const TrainingProgress& progress, const Replica& replica) {
        if (point_)
            say_continued(settings_.options(), *point_, reading_s_);
        if (run_folder_)
            begin_in_folder(world_,
                            *run_folder_,
                            point_ && point_->is_own ? &*point_ : nullptr,
                            progress,
                            settings_,
                            replica);
    }

    VerifiedCheckpoint checkpoint() const { return {point_, candidates_.found(), reading_s_}; }
    const RunFolder* folder() const { return run_folder_ ? &*run_folder_ : nullptr; }

    const CommandContext& context_;
    const HostComm& world_;
    Crew crew_;
    std::optional<RunFolder> run_folder_;
    double reading_s_;  // of checkpoints
    ResumeCandidates candidates_;
    std::optional<ResumePoint> point_;
    RunSettings settings_;
};

}  // namespace

Attempt try_to_train(const CommandContext& context, Crew crew, double start_seconds) {
    agree_on(context.world, [&] { check_encoding(crew.options.values()); });
    return TrainingAttempt{context, std::move(crew)}.run(start_seconds);
}

}  // namespace hetseq
