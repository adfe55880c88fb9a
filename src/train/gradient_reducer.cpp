#include "hetseq/train/gradient_reducer.hpp"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/profiler_range.hpp"
#include "hetseq/comm/communicator.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/gradient_buckets.hpp"

namespace hetseq {

// Called by autograd each time a backward has added to its parameter's gradient.
class GradientReducer::Hook final : public torch::autograd::PostAccumulateGradHook {
public:
    Hook(GradientReducer& reducer, std::size_t parameter)
        : reducer_{reducer}, parameter_{parameter} {}
    void operator()(const torch::autograd::Variable&) override {
        reducer_.on_gradient_ready(parameter_);
    }

private:
    GradientReducer& reducer_;
    std::size_t parameter_;
};

GradientReducer::GradientReducer(FlatParameters& parameters,
                                 Communicator& communicator,
                                 std::int64_t bucket_bytes,
                                 std::optional<at::ScalarType> sent,
                                 std::vector<TiedGradient> tied)
    : parameters_{parameters}, communicator_{communicator}, tied_{std::move(tied)} {
    if (parameters.is_part())
        return;
    if (sent && *sent != parameters.gradients().scalar_type())
        sent_ =
            at::zeros_like(parameters.gradients(), parameters.gradients().options().dtype(*sent));
    make_buckets(bucket_bytes);
    for (std::size_t i = 0; i < bucket_of_.size(); ++i)
        torch::autograd::impl::set_post_acc_grad_hooks(parameters_.parameters()[i].tensor,
                                                       std::make_unique<Hook>(*this, i));
    if (!parameters_.gradients().is_cpu())
        for (const FlatParameters::Parameter& parameter : parameters_.parameters())
            views_.push_back(parameter.tensor.grad());
}

GradientReducer::~GradientReducer() {
    for (const FlatParameters::Parameter& parameter : parameters_.parameters())
        torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
}

void GradientReducer::make_buckets(std::int64_t bucket_bytes) {
    for (const GradientBucket& bucket : cut_buckets(parameters_, bucket_bytes)) {
        bucket_of_.insert(bucket_of_.end(), bucket.parameters, buckets_.size());
        const at::Tensor own = parameters_.gradients().narrow(0, bucket.offset, bucket.numel);
        const at::Tensor sent =
            sent_.defined() ? sent_.narrow(0, bucket.offset, bucket.numel) : own;
        const int count = static_cast<int>(bucket.parameters);
        buckets_.push_back(
            {own, sent, ranges_in(bucket, parameters_.state_ranges()), count, count, {}, nullptr});
    }
}

void GradientReducer::arm() {
    armed_ = true;
}

void GradientReducer::disarm() {
    HETSEQ_ASSERT(!started());
    armed_ = false;
    for (Bucket& bucket : buckets_)
        bucket.missing = bucket.parameters;
}

void GradientReducer::add_gradients_of(const std::function<void()>& backward) {
    if (views_.empty())
        return backward();
    take_gradients_apart();
    try {
        backward();
    } catch (...) {
        put_gradients_back();
        throw;
    }
    for (Bucket& bucket : buckets_)
        add_made(bucket);
    put_gradients_back();
}

// Autograd keeps the tensor that it made where a parameter has no gradient yet.
void GradientReducer::take_gradients_apart() {
    for (std::size_t i = 0; i < views_.size(); ++i)  // the parameters may use another set by now
        views_[i] = std::exchange(parameters_.parameters()[i].tensor.mutable_grad(), {});
    gathers_ = true;
}

void GradientReducer::put_gradients_back() {
    gathers_ = false;
    for (std::size_t i = 0; i < views_.size(); ++i)
        parameters_.parameters()[i].tensor.mutable_grad() = views_[i];
    for (Bucket& bucket : buckets_)
        bucket.made.clear();
}

void GradientReducer::add_made(Bucket& bucket) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> sums, gradients;
    for (const std::size_t i : bucket.made) {
        at::Tensor& gradient = parameters_.parameters()[i].tensor.mutable_grad();
        if (gradient.is_sparse()) {
            views_[i].add_(gradient);
        } else {
            sums.push_back(views_[i]);
            gradients.push_back(gradient);
        }
        gradient = views_[i];
    }
    if (!sums.empty())
        at::_foreach_add_(sums, gradients);
    bucket.made.clear();
}

void GradientReducer::on_gradient_ready(std::size_t parameter) {
    Bucket& bucket = buckets_[bucket_of_[parameter]];
    if (gathers_) {
        bucket.made.push_back(parameter);
        if (std::cmp_equal(bucket.made.size(), bucket.parameters))
            add_made(bucket);
    }
    if (!armed_)
        return;
    --bucket.missing;
    start_ready_buckets();
}

// Only in order: a bucket that is ready early waits for those before it, so that all ranks start
// the same sequence.
void GradientReducer::start_ready_buckets() {
    while (next_ < buckets_.size() && buckets_[next_].missing == 0)
        start_next();
}

// A bucket that throws here was not started.
void GradientReducer::start_next() {
    const ProfilerRange range{"start bucket", static_cast<std::int64_t>(next_)};
    Bucket& bucket = buckets_[next_];
    if (sent_.defined())
        bucket.sent.copy_(bucket.gradients);
    bucket.work = is_sharded() ? communicator_.start_reduce_scatter_sum(bucket.sent, bucket.ranges)
                               : communicator_.start_all_reduce_sum(bucket.sent);
    ++next_;
}

bool GradientReducer::is_sharded() const noexcept {
    return !parameters_.state_ranges().empty();
}

void GradientReducer::start_rest(const at::Tensor& status, const at::Tensor& sums) {
    while (next_ < buckets_.size())
        start_next();
    if (sums.defined())
        sums_work_ = communicator_.start_all_reduce_sum(sums);
    for (const TiedGradient& tied : tied_)
        tied_work_.push_back(tied.among->start_all_reduce_sum(tied.gradient));
    status_ = status;
    if (!parameters_.is_cut())
        status_work_ = communicator_.start_all_reduce_sum(status);
}

std::vector<std::unique_ptr<Work>> GradientReducer::start_beside(const at::Tensor& gradients,
                                                                 const at::Tensor& sent,
                                                                 const at::Tensor& sums) {
    const auto part_of = [&](const at::Tensor& flat, const at::Tensor& part) {
        return flat.narrow(0, part.storage_offset(), part.numel());
    };
    std::vector<std::unique_ptr<Work>> works;
    if (sent.defined())
        at::Tensor(sent).copy_(gradients);
    for (const Bucket& bucket : buckets_)
        works.push_back(communicator_.start_all_reduce_sum(
            part_of(sent.defined() ? sent : gradients, bucket.gradients)));
    if (sums.defined())
        works.push_back(communicator_.start_all_reduce_sum(sums));
    for (const TiedGradient& tied : tied_)
        works.push_back(tied.among->start_all_reduce_sum(part_of(gradients, tied.gradient)));
    return works;
}

std::unique_ptr<Work> GradientReducer::start_status(const at::Tensor& status) {
    return communicator_.start_all_reduce_sum(status);
}

at::Tensor GradientReducer::new_sent() const {
    return sent_.defined() ? at::zeros_like(sent_) : at::Tensor{};
}

void GradientReducer::finish(const Calls& calls) {
    HETSEQ_ASSERT(status_.defined());
    if (parameters_.is_cut())
        start_status_behind_sums(calls);
    const std::unique_ptr<Work> status_work = std::move(status_work_);
    const auto take_and_use = [&] {
        if (!parameters_.is_cut())
            take_sums();
        calls.then();
    };
    status_work->wait_then(take_and_use, calls.meanwhile);  // the last: nobody is woken for others
    for (Bucket& bucket : buckets_)
        bucket.work->wait();
    if (const std::unique_ptr<Work> sums_work = std::move(sums_work_))
        sums_work->wait();
    take_timing(*status_work);
    status_.reset();
    next_ = 0;
    armed_ = false;
}

// What the status tells depends on the gradients' sums, so it starts behind them. The device is
// asked for both before the host waits.
void GradientReducer::start_status_behind_sums(const Calls& calls) {
    for (const std::unique_ptr<Work>& work : std::exchange(tied_work_, {}))
        work->wait();
    const auto tell = [&] {
        take_sums();
        calls.before_status();
    };
    const auto start = [&] { status_work_ = communicator_.start_all_reduce_sum(status_); };
    if (sums_work_ == nullptr && buckets_.empty()) {
        tell();
        start();
        return;
    }
    Work& last = sums_work_ != nullptr ? *sums_work_ : *buckets_.back().work;
    last.wait_then(tell, start);
}

void GradientReducer::take_sums() {
    if (sent_.defined())
        parameters_.gradients().copy_(sent_);
}

void GradientReducer::take_timing(Work& status_work) {
    timing_ = {};
    for (Bucket& bucket : buckets_) {
        timing_.last_bucket_ms = bucket.work->own_ms();
        timing_.buckets_ms += timing_.last_bucket_ms;
        bucket.work.reset();
        bucket.missing = bucket.parameters;
    }
    timing_.last_bucket_ms += status_work.own_ms();
    timing_.buckets_ms += status_work.own_ms();
}

void GradientReducer::zero_unstarted() {
    for (std::size_t i = next_; i < buckets_.size(); ++i)
        buckets_[i].gradients.zero_();
}

}  // namespace hetseq
