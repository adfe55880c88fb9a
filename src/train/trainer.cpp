#include "hetseq/train/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/data/batch_plan.hpp"
#include "hetseq/model/model_file.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/run_folder.hpp"
#include "hetseq/train/share_plan.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t requests_ahead = 2;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

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
      allocations_{parts.folder != nullptr && parts.world.rank() == 0 ? parts.folder->allocations()
                                                                      : ""} {
    if (options.follow && parts.world.rank() == 0 && parts.world.size() > 1)
        tracker_.emplace(parts.shares.costs());
}

TrainerReport Trainer::run() {
    request_ahead();
    load_next();
    report_.first_update_seconds = seconds_now();
    for (update_ = 0; update_ < options_.updates; ++update_) {
        const double begin = seconds_now();
        agreement_.wait();
        follow_speeds();
        share_ = std::move(next_share_);
        const ForwardContext context{Mode::train, options_.seed, update_};
        const Verdict verdict = step_.run(*share_, agreement_.weights(), context);
        request_ahead();
        load_next();
        update_parameters(verdict);
        report_.step_ms.push_back(1000 * (seconds_now() - begin));
        record();
        validate_when_due();
    }
    parts_.recorder.finish();
    if (tracker_)
        report_.costs = tracker_->costs();
    return std::move(report_);
}

// Issued by all ranks at the same updates, so that the hosts' block loads keep one order.
void Trainer::request_ahead() {
    for (; requested_ < std::min(update_ + 1 + requests_ahead, options_.updates); ++requested_) {
        if (const auto replayed = options_.replay.find(requested_);
            replayed != options_.replay.end())
            change_allocation(replayed->second);
        else if (requested_ == 0)  // an epoch's last batch is cut in proportion, as in a replay
            change_allocation(std::vector(parts_.shares.allocation(parts_.plan.batch_size())));
        const GlobalBatch batch = parts_.plan.batch(requested_);
        requested_allocations_.push_back(parts_.shares.allocation(batch.size()));
        std::int64_t micro_batch = parts_.shares.micro_batch();
        if (step_.reduced_micro_batch() > 0)
            micro_batch = std::min(micro_batch, step_.reduced_micro_batch());
        parts_.loader.request(batch, parts_.shares.slices(batch), micro_batch);
    }
}

// Takes the next update's share and tells the other ranks, without waiting for them.
void Trainer::load_next() {
    if (parts_.loader.outstanding() == 0)
        return;
    std::exception_ptr failure;
    try {
        next_share_.emplace(parts_.loader.take());
        report_.data_ms.push_back(next_share_->wait_ms());
    } catch (...) {
        next_share_.reset();
        failure = std::current_exception();
    }
    agreement_.post(next_share_ ? next_share_->weights() : std::vector<double>{},
                    failure,
                    {.compute_ms = step_.timing().is_regular ? step_.timing().compute_ms : 0,
                     .allocation = proposal_});
    proposal_.clear();
}

// The ranks' times of the update before, and perhaps another cut of the batches to come.
void Trainer::follow_speeds() {
    rank_compute_ms_.assign(agreement_.compute_ms().begin(), agreement_.compute_ms().end());
    if (const auto allocation = agreement_.allocation())
        change_allocation(*allocation);
    if (tracker_ && update_ > 0) {
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
    allocations_.add(requested_, allocation);
    if (requested_ == 0)
        return;
    ++report_.reallocations;
    std::string units;
    for (const std::int64_t of_rank : allocation)
        units += " " + std::to_string(of_rank);
    parts_.recorder.event(requested_ + 1, "from here on the ranks take" + units, log::Level::info);
}

void Trainer::update_parameters(Verdict verdict) {
    const at::Tensor gradients = parts_.parameters.gradients();
    grad_norm_ = gradient_norm(gradients).item<double>();
    lr_ = parts_.schedule(update_, share_->batch().epoch);
    if (verdict == Verdict::skip || !std::isfinite(grad_norm_)) {
        skip();
        return;
    }
    skips_in_a_row_ = 0;
    if (options_.clip_norm > 0 && grad_norm_ > options_.clip_norm)
        gradients.mul_(options_.clip_norm / grad_norm_);
    const double begin = seconds_now();
    parts_.optimizer.step(parts_.parameters, lr_);
    optimizer_ms_ = 1000 * (seconds_now() - begin);
}

// Parameters stay as they are; the ranks whose loss was not finite say on which samples.
void Trainer::skip() {
    ++report_.skipped;
    ++skips_in_a_row_;
    parts_.recorder.event(update_ + 1, "skipped, its loss or gradient is not finite");
    const auto samples =
        non_finite_samples(parts_.model, *share_, {Mode::train, options_.seed, update_});
    if (!samples.empty())
        log::warn_here("update " + std::to_string(update_ + 1) +
                       ": not finite is the loss of a micro-batch of the samples " +
                       first_few(samples));
    if (skips_in_a_row_ >= options_.max_skips)
        throw BadData(std::to_string(skips_in_a_row_) +
                          " updates in a row had a loss or gradient that is not finite",
                      "--max-skips",
                      "lower --lr, or set --clip-norm");
}

void Trainer::record() {
    const GlobalBatch& batch = share_->batch();
    report_.updates = update_ + 1;
    report_.epochs = batch.end == parts_.plan.samples() ? batch.epoch + 1 : batch.epoch;
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

void Trainer::validate_when_due() {
    const GlobalBatch& batch = share_->batch();
    const bool due = options_.valid_interval > 0 ? (update_ + 1) % options_.valid_interval == 0
                                                 : batch.end == parts_.plan.samples();
    if (parts_.evaluator == nullptr || !(due || update_ + 1 == options_.updates))
        return;
    const Evaluation evaluation = parts_.evaluator->run(step_.reduced_micro_batch());
    const bool best = std::isfinite(evaluation.loss()) &&
                      (!report_.best_valid || evaluation.loss() < report_.best_valid->loss());
    parts_.recorder.valid(update_ + 1, batch.epoch + 1, evaluation, best);
    report_.last_valid = evaluation;
    if (!best)
        return;
    report_.best_valid = evaluation;
    report_.best_update = update_ + 1;
    if (parts_.folder != nullptr && parts_.world.rank() == 0)
        save_model(parts_.folder->best_model(), parts_.model);
}

}  // namespace hetseq
