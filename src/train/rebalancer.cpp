#include "hetseq/train/rebalancer.hpp"

#include <future>
#include <iterator>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "hetseq/util/log.hpp"
#include "hetseq/train/record/recorder.hpp"
#include "hetseq/train/shares/share_plan.hpp"

namespace hetseq {

namespace {

// Where no thread can be had, whoever waits for the result does the work.
template <class Work>
std::future<std::invoke_result_t<Work&>> start_beside(const Work& work) {
    try {
        return std::async(std::launch::async, work);
    } catch (const std::system_error&) {
        return std::async(std::launch::deferred, work);
    }
}

}  // namespace

Rebalancer::Rebalancer(SharePlan& shares,
                       Recorder& recorder,
                       AllocationLog log,
                       const TrainingProgress& progress,
                       RebalancerOptions options)
    : shares_{shares},
      recorder_{recorder},
      log_{std::move(log)},
      options_{std::move(options)},
      first_{progress.updates},
      next_{progress.updates},
      reallocations_{progress.reallocations},
      cut_since_{progress.updates} {
    if (options_.follows)
        tracker_.emplace(shares.costs(), SpeedTrackerOptions{.kinds = options_.like_ranks});
}

std::vector<Slice> Rebalancer::cut(const GlobalBatch& batch) {
    if (const auto* allocation = replayed())
        change(*allocation);
    else if (next_ == first_)  // an epoch's last batch is cut in proportion, as in a replay
        change(std::vector(shares_.allocation(options_.batch_size)));
    SharePlan::Cut cut = shares_.cut(batch);
    requested_.push_back(
        {std::move(cut.units),
         batch.is_full ? shares_.allocation(options_.batch_size) : std::vector<std::int64_t>{}});
    ++next_;
    return std::move(cut.slices);
}

// The replayed cut for the next request. If the run was just started, it is the cut that holds at
// that update.
const std::vector<std::int64_t>* Rebalancer::replayed() const {
    const auto holding = holding_at(options_.replay, next_);
    if (holding == options_.replay.end())
        return nullptr;
    return holding->first == next_ || next_ == first_ ? &holding->second : nullptr;
}

// Takes effect at the next request, which is the same on all ranks.
void Rebalancer::change(const std::vector<std::int64_t>& allocation) {
    shares_.change(allocation);
    const bool is_new = log_.add(next_, allocation);
    if (!is_new || next_ == first_)
        return;
    ++reallocations_;
    std::string units;
    for (const std::int64_t of_rank : allocation)
        units += " " + std::to_string(of_rank);
    recorder_.event(next_ + 1, "new shares of the ranks:" + units, log::Level::info);
}

void Rebalancer::begin_update(const std::optional<std::vector<std::int64_t>>& agreed,
                              std::span<const double> compute_ms,
                              std::span<const double> update_ms,
                              std::span<const double> micro_batches) {
    if (agreed && next_ < options_.updates)
        change(*agreed);
    micro_batches_.assign(micro_batches.begin(), micro_batches.end());
    const bool is_first = allocation_.empty();
    if (tracker_ && !is_first)
        follow(compute_ms, update_ms);
    const std::int64_t update = next_ - std::ssize(requested_);
    allocation_ = std::move(requested_.front().units);
    if (!requested_.front().full.empty() && requested_.front().full != full_) {
        full_ = std::move(requested_.front().full);
        cut_since_ = update;
    }
    requested_.pop_front();
}

// Nearly always there is nothing to weigh. Otherwise another thread does it.
void Rebalancer::follow(std::span<const double> compute_ms, std::span<const double> update_ms) {
    finish_search();
    const std::vector<std::int64_t>& current = shares_.allocation(options_.batch_size);
    if (!tracker_->observes_slowly(allocation_)) {
        tracker_->observe(compute_ms, allocation_, update_ms);
        if (!tracker_->is_quiet(current))
            sought_ = start_beside([this, current] { return tracker_->propose(current); });
        return;
    }
    sought_ = start_beside([this,
                            current,
                            compute = std::vector(compute_ms.begin(), compute_ms.end()),
                            allocation = allocation_,
                            update = std::vector(update_ms.begin(), update_ms.end())] {
        tracker_->observe(compute, allocation, update);
        return tracker_->propose(current);
    });
}

// Waits until the tracker is at rest.
void Rebalancer::finish_search() {
    if (!sought_.valid())
        return;
    if (auto better = sought_.get())
        proposal_ = std::move(*better);
}

std::vector<std::int64_t> Rebalancer::take_proposal() {
    finish_search();
    return std::exchange(proposal_, {});
}

void Rebalancer::save_to(TrainingProgress& progress) {
    finish_search();
    progress.allocations = log_.allocations();
    progress.reallocations = reallocations_;
    if (shares_.ragged())
        progress.item_cost = shares_.ragged()->cost;
    if (!tracker_)
        return;
    progress.costs = tracker_->costs();
    for (std::size_t r = 0; r < micro_batches_.size(); ++r)
        if (micro_batches_[r] > 0)
            progress.costs[r] = limited_to(std::move(progress.costs[r]),
                                           static_cast<std::int64_t>(micro_batches_[r]));
}

}  // namespace hetseq
