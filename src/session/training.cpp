#include "hetseq/session/training.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/topology.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/record/run_history.hpp"
#include "hetseq/train/watch/run_control.hpp"
#include "hetseq/session/pipeline/like_leaders.hpp"
#include "hetseq/session/ranks/sharding.hpp"
#include "hetseq/session/ranks/slow_devices.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_identity.hpp"
#include "hetseq/session/validation_plan.hpp"

namespace hetseq {

namespace {

// Replicas on devices of different names may differ in last bits.
bool are_unlike(const std::vector<std::string>& devices) {
    return std::any_of(
        devices.begin(), devices.end(), [&](const auto& name) { return name != devices[0]; });
}

// 1 where no rank needs one, whatever the checkpoint's was.
LossScale loss_scale(const RunSettings& settings, const TrainingProgress& progress) {
    const auto& precisions = settings.precisions;
    if (std::find(precisions.begin(), precisions.end(), Precision::fp16) == precisions.end())
        return {};
    return LossScale{progress.loss_scale.value_or(LossScale::State{})};
}

// Limits of a trial run.
constexpr double trial_s = 3;
constexpr std::int64_t least_updates = 2;  // the first one touches new memory
constexpr std::int64_t most_updates = 200;
constexpr int silent_rank = 1;  // recorders speak on rank 0 alone

CheckpointPaceOptions pace_of(const Options& options, const RunHistory* history) {
    constexpr double seconds_of_minute = 60;
    CheckpointPaceOptions pace;
    if (options.save_minutes)
        pace.every_s = seconds_of_minute * *options.save_minutes;
    if (history == nullptr)
        return pace;
    pace.between_failures_s = mean_time_between_failures_s(history->starts());
    pace.has_failed = failures(history->starts()) > 0;
    pace.known = history->known_cost();
    return pace;
}

// By what earlier starts needed [s]; 0 where that was more than half of this job's time: the data
// may be others now, and a job that stops before each validation would never have one.
double expected_validation_s(const Options& options, const RunHistory& history) {
    const double known_s = history.known_validation_s();
    return known_s < options.time_limit_s / 2 ? known_s : 0;
}

void say_pace(const CheckpointPaceOptions& options) {
    const auto text = [](double seconds) { return format_number(seconds, 3) + " s"; };
    const CheckpointPace pace{options};
    const std::optional<CheckpointCost> cost = pace.cost();
    log::info(cost ? "checkpoints by the clock every " + text(pace.interval_s()) + ": one costs " +
                         text(cost->training_s) + " of training, is written in " +
                         text(cost->writing_s) + ", and a failure is reckoned with every " +
                         text(options.between_failures_s)
                   : "checkpoints by the clock: the first after " + text(pace.interval_s()) +
                         ", then as often as costs least (--save-minutes)");
}

std::string unit_of(const SharePlan& shares) {
    return shares.ragged() ? shares.ragged()->unit : "samples";
}

}  // namespace

Schedule make_schedule(const Parts& parts, PartOptions options, const RunLength& length) {
    options.schedule.total_updates = length.schedule_updates;
    options.schedule.ended_by = length.schedule_ended_by;
    return parts.schedules.get(options.schedule.name)(options);
}

std::string warning_of_no_rate(const Schedule& schedule,
                               const RunLength& length,
                               const TrainingProgress& progress) {
    const std::int64_t origin = progress.schedule_origin;
    const std::int64_t end = origin + length.schedule_updates;
    if (end >= length.updates ||
        schedule(length.updates - 1 - origin, progress.schedule_epochs) != 0)
        return "";
    return "the learning rate is 0 from update " +
           std::to_string(std::max(end, progress.updates) + 1) +
           " on, and these updates change nothing (its decay ends at update " +
           std::to_string(end) +
           (progress.updates > origin ? ", as the run began with): to decay anew, start another "
                                        "run from the newest checkpoint with --restore-file and "
                                        "--reset-lr-scheduler"
                                      : "): raise --total-num-update");
}

Training::Training(const TrainingParts& parts,
                   const RunLength& length,
                   StartingPoint start,
                   StartingShares shares)
    : parts_{parts}, length_{length}, start_{std::move(start)}, shares_{std::move(shares)} {
    Feed* const feed = parts.replica.valid_feed();
    if (feed == nullptr)
        return;
    valid_plan_.emplace(agree_on(parts.world, [&] {
        return make_validation_plan(*feed, parts.replica.model(), parts.settings, shares_.plan);
    }));
    evaluator_.emplace(parts.world,
                       parts.replica.workers(),
                       parts.replica.pass(),
                       feed->loader(),
                       *valid_plan_,
                       shares_.plan);
}

RunIdentity Training::identity() const {
    RunIdentity identity = run_identity(parts_.settings, parts_.replica);
    identity.schedule_updates = length_.schedule_updates;
    return identity;
}

// Its sums are given once: memory of those that go when they are applied is free then.
TrainerRun Training::trainer_run() {
    const Options& options = parts_.settings.options();
    RunIdentity run = identity();
    const bool are_unlike_devices = are_unlike(run.devices);
    return {
        .updates = length_.updates,
        .seed = options.seed,
        .bucket_bytes = bucket_bytes(parts_.settings, parts_.replica.parameters()),
        .sent_type = sent_type(parts_.settings),
        .follow = options.balance.policy == "auto" && parts_.replica.workers().count() > 1,
        .recomputes_at_need = parts_.settings.recomputes_at_need(parts_.world.rank()),
        .like_ranks = like_leaders(parts_.settings, parts_.replica),
        .replay = shares_.replay,
        .unlike_devices = are_unlike_devices && parts_.replica.parameters().state_ranges().empty(),
        .identity = std::move(run),
        .progress = start_.progress,
        .loss_scale = loss_scale(parts_.settings, start_.progress),
        .held_update = start_.held_update,
        .sums = std::exchange(start_.sums, {})};
}

TrainerParts Training::trainer_parts(Recorder& recorder, RunControl& control) {
    Replica& replica = parts_.replica;
    return {
        .world = parts_.world,
        .communicator = replica.communicator(),
        .workers = replica.workers(),
        .pass = replica.pass(),
        .parameters = replica.parameters(),
        .optimizer = replica.optimizer(),
        .schedule = parts_.schedule,
        .loader = replica.feed().loader(),
        .plan = replica.plan(),
        .shares = shares_.plan,
        .recorder = recorder,
        .control = &control,
        .shared = replica.stage() != nullptr ? &replica.stage()->shared() : nullptr,
        .held_model = replica.stage() != nullptr ? &replica.checkpoint_files().front() : nullptr,
        .gradient_sets = replica.gradient_sets(),
        .files_with = files_with()};
}

// None where no update is late: a checkpoint's files are the same ones each time.
std::function<std::vector<CheckpointFile>(std::span<const GradientSet>)> Training::files_with()
    const {
    if (parts_.settings.options().trainer.staleness == 0)
        return {};
    return [&replica = parts_.replica](std::span<const GradientSet> sums) {
        return replica.files_with(sums);
    };
}

TrainerReport Training::run(double start_seconds) {
    const Options& options = parts_.settings.options();
    Replica& replica = parts_.replica;
    const bool is_first = parts_.world.rank() == 0;
    Recorder recorder(parts_.folder,
                      parts_.world.rank(),
                      {.log_interval = options.log_interval,
                       .total_updates = length_.updates,
                       .first_update = start_.progress.updates + 1,
                       .loss_terms = replica.model().loss_terms(),
                       .unit = unit_of(shares_.plan),
                       .best_by = options.trainer.best_by,
                       .window = start_.progress.window,
                       .listener = parts_.listener});
    RunControl control(
        {.start_seconds = start_seconds,
         .time_limit_s = options.time_limit_s,
         .stop_file = parts_.folder != nullptr && is_first ? parts_.folder->stop_file() : "",
         .watches_clock = is_first});
    std::optional<RunHistory> history;
    if (parts_.folder != nullptr && is_first)
        history.emplace(parts_.folder->history(),
                        monotonic_seconds() - start_seconds,
                        parts_.world.size(),
                        start_.progress.updates,
                        [folder = parts_.folder] { return folder->may_write(); });
    TrainerParts parts = trainer_parts(recorder, control);
    parts.history = history ? &*history : nullptr;
    parts.evaluator = evaluator_ ? &*evaluator_ : nullptr;
    parts.folder = parts_.folder;
    parts.checkpoints = replica.checkpoints();
    TrainerRun run = trainer_run();
    run.pace = pace_of(options, parts.history);
    run.validation_s = history ? expected_validation_s(options, *history) : 0;
    if (is_first)
        run.watch = speed_watch(parts_.settings, replica);
    if (history && history->starts().size() > 1)
        recorder.goodput(start_.progress.updates, goodput(history->starts()));
    if (parts_.folder != nullptr && !options.save_minutes)
        say_pace(run.pace);
    Trainer trainer(parts, options.trainer, std::move(run));
    TrainerReport report = trainer.run();
    if (history) {
        history->end(report.is_finished() ? "finished" : "stopped");
        report.goodput = goodput(history->starts());
        recorder.goodput(report.updates, *report.goodput);
    }
    if (parts_.folder == nullptr || !parts_.folder->has_lost_lease())
        control.end();
    return report;
}

TrainerReport Training::try_out() {
    Recorder recorder(nullptr, silent_rank, {.loss_terms = parts_.replica.model().loss_terms()});
    RunControl control({.start_seconds = monotonic_seconds(),
                        .time_limit_s = trial_s,
                        .least_updates = least_updates,
                        .watches_clock = parts_.world.rank() == 0});
    TrainerOptions options = parts_.settings.options().trainer;
    const std::int64_t most =
        options.stop_after > 0 ? std::min(options.stop_after, most_updates) : most_updates;
    options.stop_after = 0;
    options.check_interval = 0;
    TrainerRun run = trainer_run();
    run.updates = std::min(length_.updates, start_.progress.updates + most);
    run.follow = false;
    Trainer trainer(trainer_parts(recorder, control), options, std::move(run));
    return trainer.run();
}

}  // namespace hetseq
