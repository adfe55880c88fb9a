#include "hetseq/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/clock.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/data/batch_plan.hpp"
#include "hetseq/model/model_file.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/checkpoint_writer.hpp"
#include "hetseq/train/replicas.hpp"
#include "hetseq/train/run_folder.hpp"
#include "hetseq/train/share_plan.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t requests_ahead = 2;
constexpr double tolerance_of_unlike_devices = 0.01;  // of max(1, |parameter|)
constexpr double saved_bytes_a_second = 100e6;        // until a checkpoint has told

std::string first_few(const std::vector<std::int64_t>& samples) {
    constexpr std::size_t shown = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(shown, samples.size()); ++i)
        text += (i > 0 ? ", " : "") + std::to_string(samples[i]);
    if (samples.size() > shown)
        text += " and " + std::to_string(samples.size() - shown) + " more";
    return text;
}

}  // namespace

Trainer::Trainer(const TrainerParts& parts, const TrainerOptions& options)
    : parts_{parts},
      options_{options},
      reducer_{parts.parameters, parts.communicator, options.bucket_bytes},
      step_{parts.model, parts.parameters, reducer_},
      agreement_{parts.world, parts.model.loss_terms().size()},
      allocations_{
          parts.folder != nullptr && parts.world.rank() == 0 ? parts.folder->allocations() : "",
          options.progress.allocations},
      update_{options.progress.updates},
      first_update_{update_},
      requested_{update_} {
    static_cast<TrainingProgress&>(report_) = options.progress;
    if (options.follow && parts.world.rank() == 0 && parts.world.size() > 1)
        tracker_.emplace(parts.shares.costs());
}

TrainerReport Trainer::run() {
    request_ahead();
    load_next();
    report_.first_update_seconds = monotonic_seconds();
    for (; update_ < options_.updates && report_.stop == StopReason::none; ++update_) {
        const double begin = monotonic_seconds();
        activity::enter(Phase::agreeing, update_ + 1);
        agreement_.wait();
        if (asked_to_stop())
            break;
        follow_speeds();
        share_ = std::move(next_share_);
        const ForwardContext context{Mode::train, options_.seed, update_};
        const Verdict verdict = step_.run(*share_, agreement_.weights(), context);
        request_ahead();
        load_next();
        update_parameters(verdict);
        report_.step_ms.push_back(1000 * (monotonic_seconds() - begin));
        record();
        compare_replicas_when_due();
        validate_when_due();
        save_when_due();
    }
    end();
    return std::move(report_);
}

// What the ranks asked for when they posted their shares: all of them stop at the same update.
bool Trainer::asked_to_stop() {
    checkpoint_asked_ = agreement_.requests().checkpoint > 0;
    report_.stop = agreement_.requests().stop();
    return report_.stop != StopReason::none;
}

void Trainer::end() {
    activity::enter(Phase::ending, report_.updates);
    if (report_.stop != StopReason::none)
        parts_.recorder.event(
            report_.updates, "stops, asked to by " + to_string(report_.stop), log::Level::info);
    parts_.recorder.finish();
    if (tracker_)
        report_.costs = tracker_->costs();
    if (parts_.checkpoints == nullptr)
        return;
    if (parts_.checkpoints->last_update() != report_.updates)
        save();
    activity::enter(Phase::saving);
    parts_.checkpoints->finish();
    activity::enter(Phase::ending);
    report_.checkpoint_seconds = parts_.checkpoints->seconds();
}

// Issued by all ranks at the same updates, so that the hosts' block loads keep one order.
void Trainer::request_ahead() {
    for (; requested_ < std::min(update_ + 1 + requests_ahead, options_.updates); ++requested_) {
        if (const auto* replayed = replayed_allocation())
            change_allocation(*replayed);
        else if (requested_ == first_update_)  // an epoch's last batch is cut in proportion, as in
                                               // a replay
            change_allocation(std::vector(parts_.shares.allocation(parts_.plan.batch_size())));
        const GlobalBatch batch = parts_.plan.batch(requested_ - report_.order_origin);
        requested_allocations_.push_back(parts_.shares.allocation(batch.size()));
        std::int64_t micro_batch = parts_.shares.micro_batch();
        if (step_.reduced_micro_batch() > 0)
            micro_batch = std::min(micro_batch, step_.reduced_micro_batch());
        parts_.loader.request(batch, parts_.shares.slices(batch), micro_batch);
    }
}

// That of the next request, or, where the run was just started, the one that holds there.
const std::vector<std::int64_t>* Trainer::replayed_allocation() const {
    const auto next = options_.replay.upper_bound(requested_);
    if (next == options_.replay.begin())
        return nullptr;
    const auto& [from, allocation] = *std::prev(next);
    return from == requested_ || requested_ == first_update_ ? &allocation : nullptr;
}

// Takes the next update's share and tells the other ranks, without waiting for them.
void Trainer::load_next() {
    if (parts_.loader.outstanding() == 0)
        return;
    std::exception_ptr failure;
    try {
        activity::enter(Phase::loading, update_ + (share_ ? 2 : 1));
        next_share_.emplace(parts_.loader.take());
        report_.data_ms.push_back(next_share_->wait_ms());
    } catch (...) {
        next_share_.reset();
        failure = std::current_exception();
    }
    agreement_.post(next_share_ ? next_share_->weights() : std::vector<double>{},
                    failure,
                    {.compute_ms = step_.timing().is_regular ? step_.timing().compute_ms : 0,
                     .allocation = proposal_,
                     .requests = requests()});
    proposal_.clear();
}

// Whoever is not heard now is heard two updates later.
Requests Trainer::requests() const {
    if (parts_.control == nullptr)
        return {};
    double longest_ms = 0;
    for (const double ms : report_.step_ms)
        longest_ms = std::max(longest_ms, ms);
    const bool validates = validates_after(update_) || validates_after(update_ + 1);
    const double valid_s = validates && report_.last_valid ? report_.last_valid->seconds : 0;
    double checkpoint_s = 0;
    if (parts_.checkpoints != nullptr)
        checkpoint_s =
            parts_.checkpoints->seconds() > 0
                ? parts_.checkpoints->seconds()
                : static_cast<double>(parts_.checkpoints->bytes()) / saved_bytes_a_second;
    return parts_.control->requests(2 * longest_ms / 1000 + valid_s, checkpoint_s);
}

// The ranks' times of the update before, and perhaps another cut of the batches to come.
void Trainer::follow_speeds() {
    rank_compute_ms_.assign(agreement_.compute_ms().begin(), agreement_.compute_ms().end());
    if (const auto allocation = agreement_.allocation())
        change_allocation(*allocation);
    if (tracker_ && update_ > first_update_) {
        tracker_->observe(rank_compute_ms_, allocation_);
        if (const auto better =
                tracker_->propose(parts_.shares.allocation(parts_.plan.batch_size())))
            proposal_ = *better;
    }
    allocation_ = std::move(requested_allocations_.front());
    requested_allocations_.pop_front();
}

// From the next request on, the same one on all ranks.
void Trainer::change_allocation(const std::vector<std::int64_t>& allocation) {
    parts_.shares.change(allocation);
    const bool is_new = allocations_.add(requested_, allocation);
    if (!is_new || requested_ == first_update_)
        return;
    ++report_.reallocations;
    std::string units;
    for (const std::int64_t of_rank : allocation)
        units += " " + std::to_string(of_rank);
    parts_.recorder.event(requested_ + 1, "from here on the ranks take" + units, log::Level::info);
}

void Trainer::update_parameters(Verdict verdict) {
    activity::enter(Phase::optimizing, update_ + 1);
    const at::Tensor gradients = parts_.parameters.gradients();
    grad_norm_ = gradient_norm(gradients).item<double>();
    lr_ = parts_.schedule(update_ - report_.schedule_origin, share_->batch().epoch);
    if (parts_.checkpoints != nullptr)
        report_.checkpoint_wait_ms =
            std::max(report_.checkpoint_wait_ms, parts_.checkpoints->wait_for_copy());
    if (verdict == Verdict::skip || !std::isfinite(grad_norm_)) {
        skip(verdict);
        return;
    }
    report_.skips_in_a_row = 0;
    if (options_.clip_norm > 0 && grad_norm_ > options_.clip_norm)
        gradients.mul_(options_.clip_norm / grad_norm_);
    const double begin = monotonic_seconds();
    parts_.optimizer.step(parts_.parameters, lr_);
    optimizer_ms_ = 1000 * (monotonic_seconds() - begin);
}

// Parameters stay as they are; the ranks whose loss or gradient was not finite say on which
// samples.
void Trainer::skip(Verdict verdict) {
    ++report_.skipped;
    ++report_.skips_in_a_row;
    parts_.recorder.event(update_ + 1, "skipped, its loss or gradient is not finite");
    const ForwardContext context{Mode::train, options_.seed, update_};
    const bool is_loss = verdict == Verdict::skip;
    const auto samples = is_loss ? non_finite_samples(parts_.model, *share_, context)
                                 : step_.non_finite_gradient_samples(*share_, context);
    if (!samples.empty())
        log::warn_here("update " + std::to_string(update_ + 1) + ": not finite is the " +
                       (is_loss ? "loss" : "gradient") + " of a micro-batch of the samples " +
                       first_few(samples));
    if (report_.skips_in_a_row >= options_.max_skips)
        throw BadData(std::to_string(report_.skips_in_a_row) +
                          " updates in a row had a loss or gradient that is not finite",
                      "--max-skips",
                      "lower --lr, or set --clip-norm");
}

void Trainer::record() {
    const GlobalBatch& batch = share_->batch();
    report_.updates = update_ + 1;
    report_.epochs = ends_epoch() ? batch.epoch + 1 : batch.epoch;
    report_.samples += batch.size();
    report_.units += batch.size();
    report_.own_units += share_->units();
    report_.compute_ms.push_back(step_.timing().compute_ms);
    report_.wait_ms.push_back(step_.timing().wait_ms);
    report_.reduce_ms.push_back(step_.timing().reduce_ms);
    report_.optimizer_ms.push_back(optimizer_ms_);
    if (reducer_.timing().last_bucket_ms > 0)
        report_.finish_ratio.push_back(reducer_.timing().wait_ms /
                                       reducer_.timing().last_bucket_ms);
    parts_.recorder.train({.update = update_ + 1,
                           .epoch = batch.epoch + 1,
                           .losses = step_.losses(),
                           .lr = lr_,
                           .grad_norm = grad_norm_,
                           .samples = batch.size(),
                           .units = batch.size(),
                           .step_ms = report_.step_ms.back(),
                           .allocation = allocation_,
                           .compute_ms = rank_compute_ms_});
}

void Trainer::compare_replicas_when_due() {
    if (options_.check_interval == 0 || report_.updates % options_.check_interval != 0)
        return;
    const ReplicaDrift drift = compare_replicas(
        parts_.world, parts_.communicator, parts_.parameters, options_.identity.devices);
    if (drift.is_within(tolerance_of_unlike_devices))
        return;
    const std::string message = "the ranks' parameters drift apart: " + drift.text();
    if (options_.drift == DriftPolicy::abort)
        throw AgreedError(ExitCode::device,
                          message +
                              "; a device is likely to be faulty, leave its host out and "
                              "continue from a checkpoint");
    parts_.recorder.event(report_.updates, message);
    if (options_.drift == DriftPolicy::warn)
        return;
    if (parts_.checkpoints != nullptr)
        parts_.checkpoints->wait_for_copy();
    copy_replica(parts_.world, parts_.communicator, parts_.parameters, parts_.optimizer);
}

bool Trainer::ends_epoch() const {
    return share_->batch().end == parts_.plan.samples();
}

bool Trainer::validates_after(std::int64_t update) const {
    if (parts_.evaluator == nullptr || update >= options_.updates)
        return false;
    const std::int64_t position = update - report_.order_origin;
    const bool due = options_.valid_interval > 0
                         ? (update + 1) % options_.valid_interval == 0
                         : parts_.plan.batch(position).end == parts_.plan.samples();
    return due || update + 1 == options_.updates;
}

void Trainer::validate_when_due() {
    if (!validates_after(update_))
        return;
    const Evaluation evaluation = parts_.evaluator->run(step_.reduced_micro_batch());
    const bool best = std::isfinite(evaluation.loss()) &&
                      (!report_.best_valid || evaluation.loss() < report_.best_valid->loss());
    parts_.recorder.valid(update_ + 1, share_->batch().epoch + 1, evaluation, best);
    report_.last_valid = evaluation;
    report_.validations_since_best = best ? 0 : report_.validations_since_best + 1;
    if (options_.patience > 0 && report_.validations_since_best >= options_.patience)
        report_.stop = StopReason::patience;
    if (!best)
        return;
    report_.best_valid = evaluation;
    report_.best_update = update_ + 1;
    activity::enter(Phase::saving);
    if (parts_.folder != nullptr && parts_.world.rank() == 0)
        save_model(parts_.folder->best_model(), parts_.model);
}

void Trainer::save_when_due() {
    if (parts_.checkpoints == nullptr)
        return;
    parts_.checkpoints->poll();
    const std::int64_t interval = options_.save_interval_updates;
    const bool by_updates = interval > 0 && report_.updates % interval == 0;
    const bool by_epochs =
        options_.save_interval > 0 && ends_epoch() && report_.epochs % options_.save_interval == 0;
    if (by_updates || by_epochs || checkpoint_asked_)
        save();
}

// Saved in the background: nobody writes to the tensors before the next optimizer step.
void Trainer::save() {
    activity::enter(Phase::saving);
    if (options_.unlike_devices)
        copy_replica(parts_.world, parts_.communicator, parts_.parameters, parts_.optimizer);
    TrainingState state{options_.identity, report_};
    state.progress.allocations = allocations_.allocations();
    if (tracker_)
        state.progress.costs = tracker_->costs();
    state.progress.window = parts_.recorder.window();
    parts_.checkpoints->start(state);
    if (parts_.control != nullptr)
        parts_.control->saved();
}

}  // namespace hetseq
