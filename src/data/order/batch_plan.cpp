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
    return windows_ ? windows_->batches_per_epoch()
                    : samples_ / batch_size_ + (samples_ % batch_size_ != 0 ? 1 : 0);
}

std::int64_t BatchPlan::full_batch() const noexcept {
    return windows_ ? windows_->full_batch() : batch_size_;
}

GlobalBatch BatchPlan::batch(std::int64_t update) const {
    HETSEQ_ASSERT(update >= 0);
    GlobalBatch batch;
    if (windows_) {
        batch = windows_->batch(update);
        batch.group = group_;
        return batch;
    }
    batch.group = group_;
    batch.update = update;
    batch.epoch = update / batches_per_epoch();
    batch.begin = update % batches_per_epoch() * batch_size_;
    batch.end = batch.begin + std::min(batch_size_, samples_ - batch.begin);
    batch.is_full = batch.size() == batch_size_;
    return batch;
}

namespace {

// Each rank's part: as many of the groups, one after the other, as `counts` says.
std::vector<Slice> slices_of_groups(const GlobalBatch& batch,
                                    std::span<const Slice> groups,
                                    std::span<const std::int64_t> counts) {
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
    if (batch.group > 0 && batch.size() > 0) {
        const std::vector<Slice> groups = groups_of(batch.size(), batch.group);
        return slices_of_groups(batch, groups, divide_items(units, std::ssize(groups)));
    }
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
    GlobalBatch each = batch;
    each.group = 0;
    if (batch.group == 0)
        return cut_by_rank(each, cut_items(item_costs, units));
    const std::vector<Slice> groups = groups_of(batch.size(), batch.group);
    std::vector<std::int64_t> group_costs;
    for (const Slice& group : groups)
        group_costs.push_back(std::accumulate(
            item_costs.begin() + group.begin, item_costs.begin() + group.end, std::int64_t{0}));
    return slices_of_groups(batch, groups, cut_items(group_costs, units));
}

}  // namespace hetseq
