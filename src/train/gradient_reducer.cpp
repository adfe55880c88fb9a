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
#include "hetseq/train/pipeline/pair_sum.hpp"
#include "hetseq/train/pipeline/shared_parameters.hpp"

namespace hetseq {

namespace {

// What `flat` has in the place of `part`, which lies in another tensor like it.
at::Tensor part_of(const at::Tensor& flat, const at::Tensor& part) {
    return flat.narrow(0, part.storage_offset(), part.numel());
}

}  // namespace

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
                                 const SharedParameters* shared)
    : parameters_{parameters}, communicator_{communicator} {
    const bool sums_any = shared == nullptr || shared->has_any();
    if (sums_any && sent && *sent != parameters.gradients().scalar_type())
        sent_ =
            at::zeros_like(parameters.gradients(), parameters.gradients().options().dtype(*sent));
    make_buckets(bucket_bytes, shared);
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

void GradientReducer::make_buckets(std::int64_t bucket_bytes, const SharedParameters* shared) {
    const auto group_of = [&](const FlatParameters::Parameter& parameter) {
        return shared != nullptr ? shared->group_of(parameter.name) : 0;
    };
    for (const GradientBucket& bucket : cut_buckets(parameters_, bucket_bytes, group_of)) {
        bucket_of_.insert(bucket_of_.end(), bucket.parameters, buckets_.size());
        const at::Tensor own = parameters_.gradients().narrow(0, bucket.offset, bucket.numel);
        const int count = static_cast<int>(bucket.parameters);
        buckets_.push_back(
            {.gradients = own,
             .sent = sent_.defined() ? sent_.narrow(0, bucket.offset, bucket.numel) : own,
             .among = shared != nullptr ? shared->among(bucket.group) : &communicator_,
             .pair = shared != nullptr ? shared->pair(bucket.group) : nullptr,
             .ranges = ranges_in(bucket, parameters_.state_ranges()),
             .parameters = count,
             .missing = count,
             .made = {},
             .work = nullptr});
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
// the same sequence. One that two ranks sum by messages waits for the end of backward, whose
// messages go first.
void GradientReducer::start_ready_buckets() {
    while (next_ < buckets_.size() && buckets_[next_].missing == 0 &&
           buckets_[next_].pair == nullptr)
        start_next();
}

// A bucket that throws here was not started.
void GradientReducer::start_next() {
    const ProfilerRange range{"start bucket", static_cast<std::int64_t>(next_)};
    Bucket& bucket = buckets_[next_];
    if (bucket.among != nullptr) {
        if (sent_.defined())
            bucket.sent.copy_(bucket.gradients);
        bucket.work = start_sum(bucket);
    }
    ++next_;
}

std::unique_ptr<Work> GradientReducer::start_sum(const Bucket& bucket) {
    if (bucket.pair != nullptr)
        return bucket.pair->start(bucket.sent);
    if (is_sharded())
        return bucket.among->start_reduce_scatter_sum(bucket.sent, bucket.ranges);
    return bucket.among->start_all_reduce_sum(bucket.sent);
}

bool GradientReducer::is_sharded() const noexcept {
    return !parameters_.state_ranges().empty();
}

void GradientReducer::start_rest(const at::Tensor& status, const at::Tensor& sums) {
    while (next_ < buckets_.size())
        start_next();
    if (sums.defined())
        sums_work_ = communicator_.start_all_reduce_sum(sums);
    status_ = status;
    if (!parameters_.is_cut())
        status_work_ = communicator_.start_all_reduce_sum(status);
}

std::vector<std::unique_ptr<Work>> GradientReducer::start_beside(const at::Tensor& gradients,
                                                                 const at::Tensor& sent,
                                                                 const at::Tensor& sums) {
    std::vector<std::unique_ptr<Work>> works;
    if (sent.defined())
        at::Tensor(sent).copy_(gradients);
    for (const Bucket& bucket : buckets_)
        if (bucket.among != nullptr)
            works.push_back(bucket.among->start_all_reduce_sum(
                part_of(sent.defined() ? sent : gradients, bucket.gradients)));
    if (sums.defined())
        works.push_back(communicator_.start_all_reduce_sum(sums));
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
            take_sent(parameters_.gradients(), sent_);
        calls.then();
    };
    status_work->wait_then(take_and_use, calls.meanwhile);  // the last: nobody is woken for others
    for (Bucket& bucket : buckets_)
        if (bucket.work != nullptr)
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
    const auto tell = [&] {
        take_sent(parameters_.gradients(), sent_);
        calls.before_status();
    };
    const auto start = [&] { status_work_ = communicator_.start_all_reduce_sum(status_); };
    if (Work* const last = wait_for_all_but_last()) {
        last->wait_then(tell, start);
        return;
    }
    tell();
    start();
}

// Those of one communicator come in their order. Null: there is nothing to wait for.
Work* GradientReducer::wait_for_all_but_last() {
    std::vector<Work*> works;
    for (const Bucket& bucket : buckets_)
        if (bucket.work != nullptr)
            works.push_back(bucket.work.get());
    if (sums_work_ != nullptr)
        works.push_back(sums_work_.get());
    if (works.empty())
        return nullptr;
    Work* const last = works.back();
    works.pop_back();
    if (parameters_.is_part())
        for (Work* const work : works)
            work->wait();
    return last;
}

void GradientReducer::take_sent(at::Tensor gradients, const at::Tensor& sent) const {
    if (!sent.defined())
        return;
    for (const Bucket& bucket : buckets_)
        if (bucket.among != nullptr)
            part_of(gradients, bucket.gradients).copy_(part_of(sent, bucket.gradients));
}

void GradientReducer::take_timing(Work& status_work) {
    timing_ = {};
    for (Bucket& bucket : buckets_) {
        bucket.missing = bucket.parameters;
        if (bucket.work == nullptr)
            continue;
        timing_.last_bucket_ms = bucket.work->own_ms();
        timing_.buckets_ms += timing_.last_bucket_ms;
        bucket.work.reset();
    }
    timing_.last_bucket_ms += status_work.own_ms();
    timing_.buckets_ms += status_work.own_ms();
}

void GradientReducer::zero_unstarted() {
    for (std::size_t i = next_; i < buckets_.size(); ++i)
        buckets_[i].gradients.zero_();
}

}  // namespace hetseq
