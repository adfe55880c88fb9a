#include "hetseq/data/order/batch_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/balance/cut_items.hpp"
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
    if (windows_)
        return windows_->batch(update);
    GlobalBatch batch;
    batch.update = update;
    batch.epoch = update / batches_per_epoch();
    batch.begin = update % batches_per_epoch() * batch_size_;
    batch.end = batch.begin + std::min(batch_size_, samples_ - batch.begin);
    batch.is_full = batch.size() == batch_size_;
    return batch;
}

std::vector<Slice> cut_by_rank(const GlobalBatch& batch, std::span<const std::int64_t> units) {
    HETSEQ_ASSERT(std::accumulate(units.begin(), units.end(), std::int64_t{0}) == batch.size());
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
    return cut_by_rank(batch, cut_items(item_costs, units));
}

}  // namespace hetseq
