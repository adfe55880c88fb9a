#include "hetseq/train/trainer.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/checkpoint/checkpoint_writer.hpp"
#include "hetseq/train/pass.hpp"
#include "hetseq/train/record/run_folder.hpp"
#include "hetseq/train/shares/share_plan.hpp"
#include "hetseq/train/waves/wave_progress.hpp"
#include "hetseq/train/worker_map.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t requests_ahead = 2;
constexpr double tolerance_of_unlike_devices = 0.01;  // of max(1, |parameter|)

// None of an update that other ranks computed, before the run was continued.
std::int64_t own_units(const std::vector<std::int64_t>& allocation, int rank) {
    const auto own = static_cast<std::size_t>(rank);
    return own < allocation.size() ? allocation[own] : 0;
}

std::vector<std::size_t> zeros_of(std::span<const double> values) {
    std::vector<std::size_t> zeros;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i] == 0)
            zeros.push_back(i);
    return zeros;
}

// One pipeline of all ranks has every batch whole.
bool cuts_batches(const TrainerParts& parts) {
    return parts.shared == nullptr || parts.workers.count() > 1;
}

TrainerRun continued(TrainerRun run) {
    run.progress = without_cuts_to_come(std::move(run.progress));
    return run;
}

}  // namespace

Trainer::Trainer(const TrainerParts& parts, const TrainerOptions& options, TrainerRun run)
    : parts_{parts},
      options_{options},
      run_{continued(std::move(run))},
      reducer_{
          parts.parameters, parts.communicator, run_.bucket_bytes, run_.sent_type, parts.shared},
      parameter_update_{parts.parameters,
                        parts.optimizer,
                        options.clip_norm,
                        options.staleness > 0 ? ParameterUpdate::Ahead::never
                                              : ParameterUpdate::Ahead::where_possible},
      gather_{parts.parameters, parts.communicator, run_.bucket_bytes},
      step_{parts.pass, parts.parameters, reducer_, parameter_update_.gate(), run_.loss_scale},
      skipped_{parts.world, parts.pass, step_, parts.recorder, options.max_skips},
      waves_{parts.pass.model(),
             parts.parameters,
             reducer_,
             step_,
             {.staleness = options.staleness,
              .sets = std::exchange(parts_.gradient_sets, {}),
              .sums = std::exchange(run_.sums, {}),
              .pending = run_.progress.pending,
              .ranks = static_cast<std::size_t>(parts.world.size())}},
      agreement_{parts.world, parts.pass.model().loss_terms().size()},
      rebalancer_{parts.shares,
                  parts.recorder,
                  AllocationLog{
                      parts.folder != nullptr && is_first_rank() && cuts_batches(parts)
                          ? parts.folder->allocations()
                          : "",
                      parts.shares.micro_batches(),
                      run_.progress.allocations,
                      parts.shares.ragged() ? parts.shares.ragged()->cost : ItemCost{},
                      [folder = parts.folder] { return folder == nullptr || folder->may_write(); }},
                  progress_of_cuts(run_.progress),
                  {.follows = run_.follow && is_first_rank() && parts.world.size() > 1,
                   .batch_size = parts.shares.full_batch(parts.plan),
                   .updates = run_.updates,
                   .like_ranks = run_.like_ranks,
                   .replay = run_.replay}},
      replicas_{parts.world,
                parts.communicator,
                parts.parameters,
                parts.pass.model(),
                parts.optimizer,
                parts.shared,
                run_.identity.devices},
      averages_{parts.parameters, parts.optimizer, gather_},
      validator_{{parts.world,
                  parts.plan,
                  parts.pass.model(),
                  parts.recorder,
                  parts.evaluator,
                  parts.folder,
                  parts.held_model},
                 {options.valid_interval, options.patience, options.best_by, run_.updates}},
      checkpoints_{
          {parts.checkpoints, parts.control, parts.history, parts.recorder}, options, run_.pace},
      speeds_{parts.shares, parts.recorder, parts.history, run_.watch},
      first_update_{run_.progress.updates},
      update_{first_update_},
      first_wave_{first_wave(run_.progress)},
      wave_{first_wave_},
      requested_{wave_} {
    static_cast<TrainingProgress&>(report_) = run_.progress;
    report_.pending.clear();
    if (run_.recomputes_at_need)
        step_.recompute_at_need([this](std::int64_t micro_batches) {
            const auto rank =
                static_cast<std::size_t>(parts_.workers.leader_of(parts_.world.rank()));
            return recomputing_costs_less(
                parts_.shares.costs()[rank], rebalancer_.allocation()[rank], micro_batches);
        });
}

TrainerReport Trainer::run() {
    request_ahead();
    load_next();
    report_.first_update_seconds = monotonic_seconds();
    if (parts_.history != nullptr)
        parts_.history->started();
    for (; update_ < run_.updates && report_.stop == StopReason::none; ++update_) {
        const double begin = monotonic_seconds();
        const bool goes_on = is_late() ? update_late() : update_at_once();
        if (!goes_on)
            break;
        record(begin);
        compare_replicas_when_due();
        validate_when_due();
        save_when_due();
    }
    end();
    return std::move(report_);
}

// The next update is computed and applied. Returns false if the run was asked to stop before.
bool Trainer::update_at_once() {
    if (!begin_wave())
        return false;
    const Verdict verdict = run_step();
    const bool ahead = optimizer_goes_first(verdict);
    if (ahead)
        update_parameters(verdict);
    request_ahead();
    load_next();
    ++wave_;
    if (!ahead)
        update_parameters(verdict);
    note_own_time(gather_wait_ms_ + step_.ms(RankTime::wait) + copying_ms_);
    return true;
}

// Waits until all ranks have their next shares. Returns false if they were asked to stop.
bool Trainer::begin_wave() {
    activity::enter(Phase::agreeing, wave_ + 1);
    agreement_.wait();
    agreed_ = monotonic_seconds();
    if (asked_to_stop())
        return false;
    compute_ms_.assign(agreement_.compute_ms().begin(), agreement_.compute_ms().end());
    speeds_.observe(update_, compute_ms_, rebalancer_.allocation());
    rebalancer_.begin_update(
        agreement_.allocation(), compute_ms_, agreement_.update_ms(), agreement_.micro_batches());
    share_ = std::move(next_share_);
    skipped_.tell_of_no_weight(wave_, agreement_.weights());
    return true;
}

// The ranks asked when they posted their shares, during the update before, so all of them stop at
// the same update.
bool Trainer::asked_to_stop() {
    const Requests requests = agreement_.requests();
    checkpoints_.hear(requests, update_);
    report_.stop = requests.stop();
    if (has_made_its_updates() && report_.stop == StopReason::none)
        report_.stop = StopReason::stop_after;
    return report_.stop != StopReason::none;
}

// As many as it was to make since it was last started.
bool Trainer::has_made_its_updates() const {
    return options_.stop_after > 0 && update_ - first_update_ >= options_.stop_after;
}

void Trainer::end() {
    wait_for_values();
    waves_.sum_all();
    activity::enter(Phase::ending, report_.updates);
    if (options_.check_interval > 0 && report_.updates > std::max(first_update_, compared_update_))
        compare_replicas();  // before the model is kept
    skipped_.tell_of_parameters(report_.updates);
    if (report_.stop != StopReason::none)
        parts_.recorder.event(
            report_.updates, "stops, asked to by " + to_string(report_.stop), log::Level::info);
    parts_.recorder.finish();
    note_optimizer_time();
    rebalancer_.save_to(report_);
    report_.full_allocation = rebalancer_.full_allocation();
    report_.slow = speeds_.slow();
    report_.recomputed_layers = parts_.pass.model().recomputed_layers();
    report_.sent_mb = parts_.pass.sent_mb();
    if (parts_.checkpoints == nullptr)
        return;
    if (std::max(parts_.checkpoints->last_update(), run_.held_update) != report_.updates)
        save(CheckpointReason::other);
    checkpoints_.finish();
    report_.checkpoint_seconds = parts_.checkpoints->seconds();
}

// All ranks request at the same updates, so that the block loads of a host keep one order.
void Trainer::request_ahead() {
    for (; requested_ < std::min(wave_ + 1 + requests_ahead, run_.updates); ++requested_) {
        const GlobalBatch batch = parts_.plan.batch(requested_ - report_.order_origin);
        const MicroBatchCap cap = parts_.shares.cap();
        parts_.loader.request(
            batch, parts_.workers.loaded(rebalancer_.cut(batch)), smaller(cap, most_in_memory()));
    }
}

MicroBatchCap Trainer::most_in_memory() const {
    return step_.reduced_cap().value_or(MicroBatchCap{});
}

bool Trainer::leads() const {
    return parts_.workers.leads(parts_.world.rank());
}

// Takes the next update's share and tells the other ranks, without waiting for them. One rank of a
// worker tells of their share.
void Trainer::load_next() {
    if (parts_.loader.outstanding() == 0)
        return;
    std::exception_ptr failure;
    try {
        if (parts_.folder != nullptr)
            parts_.folder->require_known_lease();
        parts_.recorder.require_listener();
        activity::enter(Phase::loading, wave_ + (share_ ? 2 : 1));
        next_share_.emplace(parts_.loader.take());
    } catch (...) {
        next_share_.reset();
        failure = std::current_exception();
    }
    agreement_.post(
        next_share_ && leads() ? next_share_->weights() : std::vector<double>{},
        failure,
        {.compute_ms = told_ms(),
         .update_ms = own_update_ms_,
         .allocation = rebalancer_.take_proposal(),
         .micro_batch = step_.reduced_cap() ? parts_.shares.units_of(*step_.reduced_cap()) : 0,
         .requests = requests(),
         .batch = next_share_ ? next_share_->batch() : GlobalBatch{},
         .slice = next_share_ && leads() ? next_share_->slice() : Slice{}});
}

// The first update touches new memory, and runs what a framework does once. The first stage of a
// pipeline begins first and ends last: it tells how long all of them took.
double Trainer::told_ms() const {
    if (!step_.timing().is_regular || wave_ == first_wave_)
        return 0;
    return leads() ? step_.timing().pass_ms : step_.ms(RankTime::compute);
}

// What earlier starts tell is no reason to stop before this one has done anything.
double Trainer::expected_validation_s() const {
    if (update_ <= run_.progress.updates)
        return 0;
    return report_.last_valid ? report_.last_valid->seconds : run_.validation_s;
}

// A later request takes effect two updates later.
Requests Trainer::requests() const {
    if (parts_.control == nullptr)
        return {};
    const double longest_ms = report_.times.longest_step_ms();
    const bool validates = validates_after(update_) || validates_after(update_ + 1);
    const double valid_s = validates ? expected_validation_s() : 0;
    parts_.control->save_every(checkpoints_.interval_s());
    return parts_.control->requests(2 * longest_ms / 1000 + valid_s, checkpoints_.expected_s());
}

// The device comes to the optimizer without waiting for the host to hear of the verdict.
Verdict Trainer::run_step() {
    const ForwardContext context{Mode::train, run_.seed, update_};
    lr_ = parts_.optimizer.rate(
        parts_.schedule(update_ - report_.schedule_origin, report_.schedule_epochs));
    gather_wait_ms_ = wait_for_values();
    const Verdict verdict = step_.run(*share_, agreement_.weights(), context, [this] {
        if (checkpoints_.may_change_parameters())
            parameter_update_.step_behind_gate(lr_);
    });
    done_ = figures_of(*share_);
    done_.told.losses = step_.losses();
    done_.told.gradient_norm = step_.gradient_norm();
    done_.told.scale = step_.gradient_scale();
    take_measured(step_.timing().times, done_.times);
    if (reducer_.timing().last_bucket_ms > 0)
        done_.finish_ratio = step_.ms(RankTime::wait) / reducer_.timing().last_bucket_ms;
    done_share_ = &*share_;
    return verdict;
}

// The figures of the wave that has begun. `share` is this rank's share of it.
UpdateFigures Trainer::figures_of(const LoadedShare& share) const {
    const GlobalBatch& batch = share.batch();
    return {.told = {.epoch = batch.epoch,
                     .samples = batch.size(),
                     .units = batch.units(),
                     .is_full = batch.is_full,
                     .ends_epoch = parts_.plan.ends_epoch(batch.update),
                     .allocation = rebalancer_.allocation(),
                     .weightless = zeros_of(agreement_.weights())},
            .compute_ms = compute_ms_,
            .cut_since = rebalancer_.cut_since(),
            .padding = share.padding(),
            .times = {{RankTime::data, share.wait_ms()}}};
}

// Those that other ranks have stepped.
double Trainer::wait_for_values() {
    if (!gather_.is_under_way())
        return 0;
    activity::enter(Phase::reducing);
    return gather_.wait();
}

// A GPU whose optimizer did not step behind the gate has its next work while the host loads. A CPU
// lets the other ranks know its share first. An update that is skipped has words to exchange, and
// keeps the same order on all ranks.
bool Trainer::optimizer_goes_first(Verdict verdict) const {
    return verdict == Verdict::apply && checkpoints_.may_change_parameters() &&
           !parts_.parameters.values().is_cpu();
}

void Trainer::update_parameters(Verdict verdict) {
    activity::enter(Phase::optimizing, update_ + 1);
    note_optimizer_time();
    is_applied_ = verdict == Verdict::apply;
    copying_ms_ = checkpoints_.wait_for_copy();
    report_.checkpoint_wait_ms = std::max(report_.checkpoint_wait_ms, copying_ms_);
    if (verdict != Verdict::apply) {
        parameter_update_.leave_out();
        skip(verdict);
        return;
    }
    report_.skips_in_a_row = 0;
    parameter_update_.apply(lr_, done_.told.gradient_norm, done_.told.scale);
    gather_.start();
    Model& model = parts_.pass.model();
    if (model.takes_parameters())
        gather_wait_ms_ += wait_for_values();
    model.take_update_sums();
}

// The part of an update that is neither forward and backward nor waiting. It is 0 on a GPU, where
// the host runs ahead.
void Trainer::note_own_time(double waited_ms) {
    const double since_agreed_ms = 1000 * (monotonic_seconds() - agreed_);
    own_update_ms_ = std::max(0.0, since_agreed_ms - waited_ms - step_.ms(RankTime::compute));
}

// When the next update's gradients are ready, the device has finished the optimizer, so reading its
// time does not wait.
void Trainer::note_optimizer_time() {
    if (const auto ms = parameter_update_.take_ms()) {
        report_.times.add_late(RankTime::optimizer, *ms);
        interval_times_.add(RankTime::optimizer, *ms);
    }
}

// Parameters stay as they are.
void Trainer::skip(Verdict verdict) {
    LossScale& scale = step_.loss_scale();
    if (is_late() && verdict == Verdict::skip_gradient && scale.overflowed_late(done_.told.scale))
        skipped_.skip_overflow(update_, scale.value(), report_);
    else
        skipped_.skip(verdict, done_share_, {Mode::train, run_.seed, update_}, report_);
}

// This rank's times of the update that is applied.
RankTimes Trainer::own_times() const {
    RankTimes times = done_.times;
    if (!parts_.parameters.state_ranges().empty()) {
        times[RankTime::wait] = step_.ms(RankTime::wait) + gather_wait_ms_;
        times[RankTime::reduce] = step_.ms(RankTime::reduce) + gather_.own_ms();
    }
    return times;
}

// Each rank's, where a line of metrics.jsonl is due.
ByRankTime<std::vector<double>> Trainer::gather_times(const RankTimes& own) {
    interval_times_.add(own);
    return parts_.recorder.is_due(update_ + 1) ? interval_times_.take(parts_.world)
                                               : ByRankTime<std::vector<double>>{};
}

void Trainer::record(double begin_s) {
    const RankTimes own = own_times();
    const auto rank_times = gather_times(own);  // waits for the others, as the next update would
    const double step_ms = 1000 * (monotonic_seconds() - begin_s);
    const PendingUpdate& told = done_.told;
    report_.updates = update_ + 1;
    report_.loss_scale = step_.loss_scale().state();
    report_.epochs = ends_epoch() ? told.epoch + 1 : told.epoch;
    report_.schedule_epochs += ends_epoch() ? 1 : 0;
    report_.samples += told.samples;
    report_.units += told.units;
    report_.values += done_.padding.values;
    report_.padded_values += done_.padding.padded_values;
    const TimedUpdate times{
        .step_ms = step_ms,
        .times = own,
        .finish_ratio = done_.finish_ratio,
        .samples = told.samples,
        .units = told.units,
        .own_units = own_units(told.allocation, parts_.world.rank()),
        .is_full = told.is_full,
        .computed = is_late() ? computed_ : 1,
        .is_timed = !is_late() || computed_ == 1,
        .cut_since = std::max<std::int64_t>(0, done_.cut_since - first_update_)};
    if (step_.timing().is_regular && update_ > first_update_)
        report_.pass_ms.add(step_.timing().pass_ms);
    report_.times.add(times);
    checkpoints_.updated(step_ms / 1000);
    const double copying_s = std::exchange(copying_ms_, 0) / 1000;
    if (parts_.history != nullptr) {
        parts_.history->saved(copying_s);
        parts_.history->updated(report_.updates, step_ms / 1000 - copying_s);
    }
    parts_.recorder.train({.update = update_ + 1,
                           .epoch = told.epoch + 1,
                           .losses = told.losses,
                           .weightless = told.weightless,
                           .is_applied = is_applied_,
                           .lr = lr_,
                           .grad_norm = told.gradient_norm,
                           .loss_scale = report_.loss_scale,
                           .samples = told.samples,
                           .units = told.units,
                           .step_ms = step_ms,
                           .allocation = told.allocation,
                           .compute_ms = done_.compute_ms,
                           .rank_times = rank_times});
}

// The first update shows a model that is not the same on all ranks by itself.
void Trainer::compare_replicas_when_due() {
    const bool is_due = report_.updates % std::max<std::int64_t>(options_.check_interval, 1) == 0 ||
                        update_ == first_update_;
    if (options_.check_interval > 0 && is_due)
        compare_replicas();
}

void Trainer::compare_replicas() {
    wait_for_values();
    compared_update_ = report_.updates;
    const ReplicaDrift drift = replicas_.drift();
    if (drift.is_within(tolerance_of_unlike_devices))
        return;
    const std::string message = "the ranks' models drift apart: " + drift.text();
    if (options_.drift == DriftPolicy::abort)
        throw AgreedError(ExitCode::internal,
                          message +
                              "; a device is probably faulty, or a task in Python looks at its "
                              "rank: leave the host out and continue from a checkpoint, or mend "
                              "the task");
    parts_.recorder.event(report_.updates, message);
    if (options_.drift == DriftPolicy::warn)
        return;
    checkpoints_.wait_for_copy();
    replicas_.make_alike();
}

bool Trainer::validates_after(std::int64_t update) const {
    return validator_.is_due_after(update, update - report_.order_origin);
}

void Trainer::validate_when_due() {
    if (!validates_after(update_))
        return;
    wait_for_values();
    if (averages_.exist())
        checkpoints_.wait_for_copy();
    averages_.put_in();
    if (validator_.run(done_.told.epoch + 1, most_in_memory(), report_))
        report_.stop = StopReason::patience;
    averages_.take_out();
    if (parts_.history != nullptr)
        parts_.history->validated(report_.last_valid->seconds);
}

void Trainer::save_when_due() {
    const bool is_last = report_.updates == run_.updates || report_.stop != StopReason::none ||
                         report_.updates - first_update_ == options_.stop_after;
    if (const auto reason = checkpoints_.due({.progress = report_,
                                              .ends_epoch = ends_epoch(),
                                              .is_last = is_last,
                                              .can_save = !has_surplus()}))
        save(*reason);
}

// Saving goes on in the background. Nobody writes to the tensors before the next optimizer step.
// If more updates are pending than the staleness, patience ended the run, and it does not need
// them.
void Trainer::save(CheckpointReason reason) {
    activity::enter(Phase::saving);
    checkpoints_.prepare();
    const double began_s = monotonic_seconds();
    wait_for_values();
    waves_.sum_all();
    activity::enter(Phase::saving);
    if (parts_.folder != nullptr)
        parts_.folder->look_after_parts();
    if (run_.unlike_devices)
        replicas_.make_alike();
    TrainingState state{run_.identity, report_};
    rebalancer_.save_to(state.progress);
    state.progress.window = parts_.recorder.window();
    state.progress.pending = waves_.pending();
    if (parts_.files_with)
        parts_.checkpoints->use(parts_.files_with(waves_.sums()));
    checkpoints_.start(state, reason, began_s);
}

}  // namespace hetseq
