#include "hetseq/train/update_step.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "hetseq/util/activity.hpp"
#include "hetseq/util/error.hpp"
#include "hetseq/util/log.hpp"
#include "hetseq/util/profiler_range.hpp"

#include "normalised_loss.hpp"
#include "out_of_memory.hpp"

#include "hetseq/data/loader.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/step_gate.hpp"
#include "hetseq/train/gradient_reducer.hpp"

namespace hetseq {

namespace {

// What had no memory, halved: in samples, or in padded tokens where these are what was capped.
MicroBatchCap halved(const MicroBatchCap& largest) {
    if (largest.tokens == MicroBatchCap::none)
        return {.samples = largest.samples / 2};
    return {.tokens = std::max<std::int64_t>(largest.tokens / 2, 1)};
}

std::string cap_text(const MicroBatchCap& cap) {
    return cap.tokens == MicroBatchCap::none ? std::to_string(cap.samples) + " samples"
                                             : std::to_string(cap.tokens) + " tokens";
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

void append_ids(const MicroBatch& micro_batch, std::vector<std::int64_t>& samples) {
    const at::Tensor ids = micro_batch.sample_ids.to(at::kCPU);
    const auto* begin = ids.const_data_ptr<std::int64_t>();
    samples.insert(samples.end(), begin, begin + ids.numel());
}

}  // namespace

UpdateStep::UpdateStep(Model& model,
                       FlatParameters& parameters,
                       GradientReducer& reducer,
                       StepGate* gate)
    : model_{model},
      parameters_{parameters},
      reducer_{reducer},
      gate_{gate},
      status_{model.loss_terms().size(), parameters.values().device()},
      norm_{parameters.gradients()},
      timer_{parameters.values().device()},
      wait_timer_{parameters.values().device()},
      losses_(model.loss_terms().size()) {}

Verdict UpdateStep::run(LoadedShare& share,
                        std::span<const double> weights,
                        const ForwardContext& context,
                        const std::function<void()>& behind_gate) {
    timing_ = {};
    // Requested before this rank knew.
    if (reduced_cap_ &&
        smaller(share.largest_micro_batch(), *reduced_cap_) != share.largest_micro_batch())
        share.recut(*reduced_cap_);
    for (;;) {
        timer_.begin();
        activity::enter(Phase::computing, context.update + 1);
        compute(share, weights, context);
        timer_.end();
        wait_timer_.begin();
        reducer_.start_rest(status_.slots());
        // A rank that is stuck from here on is behind the others, which go on.
        activity::enter(Phase::reducing);
        const auto send_status = [this] {
            wait_timer_.end();
            status_.send(norm_.of(parameters_.gradients()));
        };
        reducer_.finish(send_status, [&] {
            if (gate_ == nullptr)
                return;
            gate_->set(status_.slots(), norm_.last());
            behind_gate();
        });
        UpdateStatus::Reading reading = status_.read();
        losses_ = std::move(reading.losses);
        gradient_norm_ = reading.gradient_norm;
        timing_.compute_ms += timer_.ms();
        timing_.wait_ms += wait_timer_.ms();
        timing_.reduce_ms += reducer_.timing().buckets_ms;
        if (reading.verdict != Verdict::repeat)
            return reading.verdict;
        timing_.is_regular = false;
        log::info("update " + std::to_string(context.update + 1) +
                  " is repeated: a rank ran out of memory");
    }
}

// A rank that runs out of memory starts its share again with smaller micro-batches. If a bucket was
// started already, it finishes with zeros and makes all ranks repeat the update.
void UpdateStep::compute(LoadedShare& share,
                         std::span<const double> weights,
                         const ForwardContext& context) {
    for (;;) {
        try {
            forward_backward(share, weights, context);
            return;
        } catch (const std::exception& error) {
            if (!is_out_of_memory(error))
                throw;
            timing_.is_regular = false;
            halve_micro_batch(share, error.what());
        }
        if (reducer_.started()) {
            reducer_.zero_unstarted();
            status_.mark_out_of_memory();
            return;
        }
        reducer_.disarm();
    }
}

void UpdateStep::forward_backward(const LoadedShare& share,
                                  std::span<const double> weights,
                                  const ForwardContext& context) {
    parameters_.zero_gradients();
    status_.zero();
    const auto& micro_batches = share.micro_batches();
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
        const ProfilerRange range{"micro-batch", static_cast<std::int64_t>(i)};
        const at::Tensor loss = normalised_loss(
            model_.forward(share.on_device(micro_batches[i]), context), weights, status_);
        if (i + 1 == micro_batches.size())
            reducer_.arm();
        if (loss.defined())
            loss.backward();
    }
}

void UpdateStep::halve_micro_batch(LoadedShare& share, const std::string& reason) {
    const MicroBatchCap largest = share.largest_micro_batch();
    if (largest.samples <= 1)
        throw DeviceError("out of memory with a micro-batch of one sample",
                          reason,
                          "use a smaller model or a larger device");
    reduced_cap_ = halved(largest);
    share.recut(*reduced_cap_);
    log::warn_here("out of memory: micro-batch halved to " + cap_text(*reduced_cap_) + " (" +
                   first_line(reason) + ")");
}

std::vector<std::int64_t> UpdateStep::non_finite_gradient_samples(const LoadedShare& share,
                                                                  const ForwardContext& context) {
    const std::vector<double> weights(losses_.size(), 1);  // what is not finite stays so
    std::vector<std::int64_t> samples;
    for (const MicroBatch& micro_batch : share.micro_batches()) {
        parameters_.zero_gradients();
        normalised_loss(model_.forward(share.on_device(micro_batch), context), weights, status_)
            .backward();
        if (!std::isfinite(norm_.of(parameters_.gradients()).item<double>()))
            append_ids(micro_batch, samples);
    }
    parameters_.zero_gradients();
    return samples;
}

std::vector<std::int64_t> non_finite_samples(Model& model,
                                             const LoadedShare& share,
                                             const ForwardContext& context) {
    const at::NoGradGuard no_grad;
    std::vector<std::int64_t> samples;
    for (const MicroBatch& micro_batch : share.micro_batches()) {
        bool finite = true;
        for (const at::Tensor& loss : model.forward(share.on_device(micro_batch), context).losses)
            finite = finite && at::isfinite(loss).item<bool>();
        if (!finite)
            append_ids(micro_batch, samples);
    }
    return samples;
}

}  // namespace hetseq
