#include "hetseq/train/update_step.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/isfinite.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/process/activity.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/step_gate.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/pass.hpp"

#include "out_of_memory.hpp"

namespace hetseq {

namespace {

// Half of a micro-batch of several samples: in padded tokens where their lengths are unequal, in
// whole groups where it has these.
MicroBatchCap half_of(const MicroBatch& part, bool is_ragged) {
    const std::vector<std::int64_t>& groups = part.groups.sizes;
    if (!is_ragged && !groups.empty())
        return {.samples =
                    *std::max_element(groups.begin(), groups.end()) * (std::ssize(groups) / 2)};
    if (!is_ragged)
        return {.samples = part.samples / 2};
    return {.tokens = std::max<std::int64_t>(part.padded_tokens / 2, 1)};
}

std::string cap_text(const MicroBatchCap& cap) {
    return cap.tokens == MicroBatchCap::none ? count_text(cap.samples, "sample")
                                             : count_text(cap.tokens, "token");
}

// "sample 17", or "sample 17 of 900 tokens".
std::string sample_text(const MicroBatch& part, bool is_ragged) {
    return "sample " + std::to_string(part.sample_ids[0].item<std::int64_t>()) +
           (is_ragged ? " of " + std::to_string(part.padded_tokens) + " tokens" : "");
}

void append_ids(const MicroBatch& micro_batch, std::vector<std::int64_t>& samples) {
    const at::Tensor ids = micro_batch.sample_ids.to(at::kCPU);
    const auto* begin = ids.const_data_ptr<std::int64_t>();
    samples.insert(samples.end(), begin, begin + ids.numel());
}

}  // namespace

UpdateStep::UpdateStep(Pass& pass,
                       FlatParameters& parameters,
                       GradientReducer& reducer,
                       StepGate* gate,
                       const LossScale& loss_scale)
    : pass_{pass},
      model_{pass.model()},
      parameters_{parameters},
      reducer_{reducer},
      gate_{gate},
      loss_scale_{loss_scale},
      status_{model_.loss_terms().size(),
              parameters.values().device(),
              parameters.is_cut() ? parameters.all_blocks() : 0},
      norm_{parameters},
      timer_{parameters.values().device()},
      wait_timer_{parameters.values().device()},
      losses_(model_.loss_terms().size()) {}

// The share was requested before this rank knew what its memory holds.
void UpdateStep::begin(LoadedShare& share) {
    timing_ = {};
    if (reduced_cap_ && share.exceeds(*reduced_cap_))
        share.recut(*reduced_cap_);
}

Verdict UpdateStep::run(LoadedShare& share,
                        std::span<const double> weights,
                        const ForwardContext& context,
                        const std::function<void()>& behind_gate) {
    begin(share);
    loss_scale_.begin();
    for (;;) {
        timer_.begin();
        activity::enter(Phase::computing, context.update + 1);
        compute(share, weights, context);
        timer_.end();
        wait_timer_.begin();
        reducer_.start_rest(status_.slots(), model_.update_sums());
        // A rank that is stuck from here on is behind the others, which go on.
        activity::enter(Phase::reducing);
        finish_reduction(behind_gate);
        UpdateStatus::Reading reading = status_.read();
        losses_ = std::move(reading.losses);
        gradient_scale_ = loss_scale_.value();
        gradient_norm_ = reading.gradient_norm / gradient_scale_;
        add_pass_times();
        timing_.times[RankTime::wait] = ms(RankTime::wait) + wait_timer_.ms();
        timing_.times[RankTime::reduce] = ms(RankTime::reduce) + reducer_.timing().buckets_ms;
        if (reading.verdict == Verdict::repeat && pass_.is_shared())
            make_room(share);
        const std::string reason = reason_to_repeat(reading.verdict);
        if (reason.empty())
            return reading.verdict;
        timing_.is_regular = false;
        log::info("update " + std::to_string(context.update + 1) + " is repeated: " + reason);
    }
}

// Where parameters or their state are cut over ranks, each has the sums of what it holds, and tells
// their squares.
void UpdateStep::finish_reduction(const std::function<void()>& behind_gate) {
    const bool has_all = !parameters_.is_cut();
    reducer_.finish(
        {.before_status = [&] { norm_.held_squares(parameters_.gradients(), status_.squares()); },
         .then =
             [&] {
                 wait_timer_.end();
                 status_.send(has_all ? norm_.of(parameters_.gradients())
                                      : norm_.from_squares(status_.squares()));
             },
         .meanwhile =
             [&] {
                 if (gate_ == nullptr)
                     return;
                 gate_->set(status_.slots(), norm_.last(), loss_scale_.value());
                 behind_gate();
             }});
}

// Empty: it is not repeated. Zeros of a rank that ran out of memory may hide an overflow.
std::string UpdateStep::reason_to_repeat(Verdict verdict) {
    if (verdict == Verdict::repeat)
        return "a rank ran out of memory";
    if (verdict == Verdict::apply)
        loss_scale_.applied();
    if (verdict != Verdict::skip_gradient || !loss_scale_.overflowed())
        return "";
    return "a gradient in fp16 was too large, and the loss scale is " +
           std::to_string(static_cast<std::int64_t>(loss_scale_.value())) + " now";
}

// A rank that runs out of memory starts its share again in less of it. If a bucket was
// started already, or other ranks compute the share with this one, it finishes with what it has and
// makes all ranks repeat the update.
void UpdateStep::compute(LoadedShare& share,
                         std::span<const double> weights,
                         const ForwardContext& context) {
    for (;;) {
        try {
            forward_backward(share, weights, context, status_, Buckets::start);
            return;
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error))
                throw;
            timing_.is_regular = false;
            lacked_memory_ = reason_of(error);
        }
        if (!pass_.is_shared())
            make_room(share);
        if (reducer_.started() || pass_.is_shared()) {
            reducer_.zero_unstarted();
            status_.mark_out_of_memory();
            return;
        }
        reducer_.disarm();
    }
}

void UpdateStep::forward_backward(const LoadedShare& share,
                                  std::span<const double> weights,
                                  const ForwardContext& context,
                                  UpdateStatus& status,
                                  Buckets buckets) {
    parameters_.zero_gradients();
    status.zero();
    if (const at::Tensor sums = model_.update_sums(); sums.defined())
        sums.zero_();
    pass_.forward_backward({.share = share,
                            .end = share.micro_batches().size(),
                            .weights = weights,
                            .context = context,
                            .loss_scale = loss_scale_.value(),
                            .reduces = buckets == Buckets::start},
                           reducer_,
                           status);
}

void UpdateStep::run_alone(LoadedShare& share,
                           std::span<const double> weights,
                           const ForwardContext& context,
                           UpdateStatus& status,
                           const std::function<void()>& then) {
    begin(share);
    timer_.begin();
    activity::enter(Phase::computing, context.update + 1);
    while (lacks_memory_alone(share, weights, context, status)) {
        timing_.is_regular = false;
        make_room(share);
    }
    timer_.end();
    then();
    add_pass_times();
}

// Of the last forward and backward, in which stages of a pipeline wait for each other.
void UpdateStep::add_pass_times() {
    const double waited_ms = std::min(pass_.waited_ms(), timer_.ms());
    timing_.pass_ms += timer_.ms();
    timing_.times[RankTime::compute] = ms(RankTime::compute) + timer_.ms() - waited_ms;
    timing_.times[RankTime::wait] = ms(RankTime::wait) + waited_ms;
}

// Other ranks that compute the share do so again with this one.
bool UpdateStep::lacks_memory_alone(const LoadedShare& share,
                                    std::span<const double> weights,
                                    const ForwardContext& context,
                                    UpdateStatus& status) {
    bool lacks = false;
    try {
        forward_backward(share, weights, context, status, Buckets::wait);
    } catch (const std::exception& error) {
        if (!is_out_of_memory(error))
            throw;
        lacks = true;
        lacked_memory_ = reason_of(error);
    }
    return pass_.is_so_on_any(lacks);
}

// Collective where the pass is shared: the ranks that compute a share together cut it alike.
void UpdateStep::make_room(LoadedShare& share) {
    const MicroBatchCap cap = pass_.agreed_cap([&] {
        const std::string reason = std::exchange(lacked_memory_, {});
        return reason.empty() ? MicroBatchCap{} : cap_with_room(share, reason);
    });
    if (cap == MicroBatchCap{})
        return;
    reduced_cap_ = cap;
    share.recut(cap);
}

// No cap: layers are computed again instead.
MicroBatchCap UpdateStep::cap_with_room(const LoadedShare& share, const std::string& reason) {
    if (!recomputes_first(share))
        return halved_micro_batch(share, reason);
    model_.recompute(model_.recomputable_layers());
    log::warn_here("out of memory: backward computes " +
                   count_text(model_.recomputed_layers(), "layer") + " again from now on (" +
                   reason + ")");
    return {};
}

bool UpdateStep::recomputes_first(const LoadedShare& share) const {
    const auto& parts = share.micro_batches();
    if (recomputing_costs_less_ == nullptr || parts.empty() ||
        model_.recomputed_layers() == model_.recomputable_layers())
        return false;
    return !that_takes_memory(share).is_divisible() || recomputing_costs_less_(std::ssize(parts));
}

// The micro-batch at work. In a pipeline others are in flight beside it: where it cannot be made
// smaller, the largest that can.
const MicroBatch& UpdateStep::that_takes_memory(const LoadedShare& share) const {
    const auto& parts = share.micro_batches();
    const MicroBatch* found = &parts[pass_.at_work()];
    if (found->is_divisible() || !pass_.is_shared())
        return *found;
    for (const MicroBatch& part : parts)
        if (part.is_divisible() && (!found->is_divisible() || part.samples > found->samples))
            found = &part;
    return *found;
}

// What may help where a micro-batch cannot be made smaller.
std::string UpdateStep::other_cures() const {
    const bool recomputes = model_.recomputed_layers() < model_.recomputable_layers();
    return std::string(recomputes ? "give --recompute all, or " : "") +
           "use a smaller model or a larger device";
}

// The one that did not fit is halved, not the largest: what takes most memory is not always what
// counts most samples or tokens. A cap so halved is below all earlier ones, so this ends with
// single samples after a few steps.
MicroBatchCap UpdateStep::halved_micro_batch(const LoadedShare& share,
                                             const std::string& reason) const {
    if (share.micro_batches().empty())
        throw DeviceError("out of memory, without any micro-batch", reason, other_cures());
    const MicroBatch& part = that_takes_memory(share);
    const bool is_ragged = share.batch().items != nullptr;
    if (part.samples > 1 && !part.is_divisible())
        throw DeviceError("out of memory: this device does not hold a group of " +
                              count_text(part.samples, "sample"),
                          reason,
                          "lower --norm-group, or " + other_cures());
    if (part.samples <= 1)
        throw DeviceError(
            "out of memory: this device does not hold a single sample, " +
                sample_text(part, is_ragged),
            reason,
            other_cures() + (is_ragged ? ", or leave such samples out with --skip-too-long and "
                                         "a lower --max-length"
                                       : ""));
    const MicroBatchCap cap = half_of(part, is_ragged);
    log::warn_here("out of memory: micro-batch halved to " + cap_text(cap) + " (" + reason + ")");
    return cap;
}

std::vector<std::int64_t> UpdateStep::non_finite_gradient_samples(const LoadedShare& share,
                                                                  const ForwardContext& context) {
    const std::vector<double> weights(losses_.size(), 1);  // what is not finite stays so
    std::vector<std::int64_t> samples;
    const auto& micro_batches = share.micro_batches();
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
        parameters_.zero_gradients();
        pass_.forward_backward({.share = share,
                                .begin = i,
                                .end = i + 1,
                                .weights = weights,
                                .context = context,
                                .reduces = false},
                               reducer_,
                               status_);
        if (pass_.holds_on_any(!std::isfinite(norm_.of(parameters_.gradients()).item<double>())))
            append_ids(micro_batches[i], samples);
    }
    parameters_.zero_gradients();
    return samples;
}

std::vector<std::int64_t> non_finite_samples(Pass& pass,
                                             const LoadedShare& share,
                                             const ForwardContext& context) {
    std::vector<std::int64_t> samples;
    pass.forward(share, context, [&](const MicroBatch& micro_batch, const ForwardResult& result) {
        const auto is_finite = [](const at::Tensor& loss) {
            return at::isfinite(loss).item<bool>();
        };
        if (!std::all_of(result.losses.begin(), result.losses.end(), is_finite))
            append_ids(micro_batch, samples);
    });
    return samples;
}

}  // namespace hetseq
