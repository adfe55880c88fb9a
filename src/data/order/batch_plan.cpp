#include "hetseq/data/order/batch_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/cut_items.hpp"
#include "hetseq/balance/divide_items.hpp"
#include "hetseq/data/order/sample_groups.hpp"
#include "hetseq/data/order/window_plan.hpp"

namespace hetseq {

BatchPlan::BatchPlan(std::int64_t samples, std::int64_t batch_size)
    : samples_{samples}, batch_size_{batch_size} {
    HETSEQ_ASSERT(samples >= 1);
    HETSEQ_ASSERT(batch_size >= 1);
}

BatchPlan::BatchPlan(std::shared_ptr<WindowPlan> windows)
    : samples_{windows->samples()}, windows_{std::move(windows)} {}

std::int64_t BatchPlan::batches_per_epoch() const noexcept {
    if (windows_)
        return windows_->batches_per_epoch();
    const std::int64_t all = epoch_groups_.empty() ? samples_ : std::ssize(epoch_groups_);
    return all / batch_size_ + (all % batch_size_ != 0 ? 1 : 0);
}

std::int64_t BatchPlan::full_batch() const noexcept {
    if (!epoch_groups_.empty())
        return batch(0).size();
    return windows_ ? windows_->full_batch() : batch_size_;
}

void BatchPlan::set_groups(std::int64_t size) {
    HETSEQ_ASSERT(size >= 1);
    group_size_ = size;
}

// `batch_size_` counts groups from now on.
void BatchPlan::set_groups_of_epoch(std::int64_t size) {
    HETSEQ_ASSERT(windows_ == nullptr && size >= 1);
    group_size_ = size;
    epoch_groups_ = groups_of(samples_, size);
    batch_size_ = std::max<std::int64_t>(1, batch_size_ / largest_group());
}

std::int64_t BatchPlan::largest_group() const {
    if (group_size_ == 0)
        return 0;
    if (!epoch_groups_.empty())
        return hetseq::largest_group(samples_, group_size_);
    return std::max(hetseq::largest_group(batch(0).size(), group_size_),
                    hetseq::largest_group(batch(batches_per_epoch() - 1).size(), group_size_));
}

GlobalBatch BatchPlan::batch(std::int64_t update) const {
    HETSEQ_ASSERT(update >= 0);
    if (!epoch_groups_.empty())
        return batch_of_groups(update);
    GlobalBatch batch;
    if (windows_) {
        batch = windows_->batch(update);
    } else {
        batch.update = update;
        batch.epoch = update / batches_per_epoch();
        batch.begin = update % batches_per_epoch() * batch_size_;
        batch.end = batch.begin + std::min(batch_size_, samples_ - batch.begin);
        batch.is_full = batch.size() == batch_size_;
    }
    if (group_size_ > 0)
        batch.groups =
            std::make_shared<const std::vector<Slice>>(groups_of(batch.size(), group_size_));
    return batch;
}

GlobalBatch BatchPlan::batch_of_groups(std::int64_t update) const {
    const std::int64_t first = update % batches_per_epoch() * batch_size_;
    const std::int64_t count = std::min(batch_size_, std::ssize(epoch_groups_) - first);
    std::vector<Slice> groups(epoch_groups_.begin() + first, epoch_groups_.begin() + first + count);
    GlobalBatch batch;
    batch.update = update;
    batch.epoch = update / batches_per_epoch();
    batch.begin = groups.front().begin;
    batch.end = groups.back().end;
    batch.is_full = count == batch_size_;
    for (Slice& group : groups)
        group = {group.begin - batch.begin, group.end - batch.begin};
    batch.groups = std::make_shared<const std::vector<Slice>>(std::move(groups));
    return batch;
}

namespace {

// Each rank's part: as many of the groups, one after the other, as `counts` says.
std::vector<Slice> slices_of_groups(const GlobalBatch& batch,
                                    std::span<const std::int64_t> counts) {
    const std::vector<Slice>& groups = *batch.groups;
    std::vector<Slice> slices;
    std::int64_t begin = batch.begin;
    std::size_t next = 0;
    for (const std::int64_t count : counts) {
        next += static_cast<std::size_t>(count);
        const std::int64_t end = next == 0 ? batch.begin : batch.begin + groups[next - 1].end;
        slices.push_back({begin, end});
        begin = end;
    }
    return slices;
}

}  // namespace

std::vector<Slice> cut_by_rank(const GlobalBatch& batch, std::span<const std::int64_t> units) {
    HETSEQ_ASSERT(std::accumulate(units.begin(), units.end(), std::int64_t{0}) == batch.size());
    if (batch.groups && batch.size() > 0)
        return slices_of_groups(batch, divide_items(units, std::ssize(*batch.groups)));
    std::vector<Slice> slices;
    std::int64_t begin = batch.begin;
    for (const std::int64_t size : units) {
        HETSEQ_ASSERT(size >= 0);
        slices.push_back({begin, begin + size});
        begin += size;
    }
    return slices;
}

std::vector<Slice> cut_by_rank(const GlobalBatch& batch,
                               std::span<const std::int64_t> units,
                               std::span<const std::int64_t> item_costs) {
    HETSEQ_ASSERT(std::ssize(item_costs) == batch.size());
    if (batch.groups) {
        std::vector<std::int64_t> group_costs;
        for (const Slice& group : *batch.groups)
            group_costs.push_back(std::accumulate(
                item_costs.begin() + group.begin, item_costs.begin() + group.end, std::int64_t{0}));
        return slices_of_groups(batch, cut_items(group_costs, units));
    }
    return cut_by_rank(batch, cut_items(item_costs, units));
}

}  // namespace hetseq
