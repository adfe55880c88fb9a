#include "hetseq/data/order/batch_plan.hpp"

#include <algorithm>
#include <numeric>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

std::int64_t length_at(LengthsView lengths, std::int64_t index) {
    return lengths.empty() ? 1 : lengths[static_cast<std::size_t>(index)];
}

std::int64_t total_units(const GlobalBatch& batch, LengthsView lengths) {
    return lengths.empty() ? batch.size()
                           : std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

}  // namespace

BatchPlan::BatchPlan(std::int64_t samples, std::int64_t batch_size)
    : samples_{samples}, batch_size_{batch_size} {
    HETSEQ_ASSERT(samples >= 1);
    HETSEQ_ASSERT(batch_size >= 1);
}

std::int64_t BatchPlan::batches_per_epoch() const noexcept {
    return samples_ / batch_size_ + (samples_ % batch_size_ != 0 ? 1 : 0);
}

GlobalBatch BatchPlan::batch(std::int64_t update) const {
    HETSEQ_ASSERT(update >= 0);
    GlobalBatch batch;
    batch.update = update;
    batch.epoch = update / batches_per_epoch();
    batch.begin = update % batches_per_epoch() * batch_size_;
    batch.end = batch.begin + std::min(batch_size_, samples_ - batch.begin);
    return batch;
}

std::vector<Slice> cut_by_rank(const GlobalBatch& batch,
                               std::span<const std::int64_t> units,
                               LengthsView lengths) {
    HETSEQ_ASSERT(lengths.empty() || std::ssize(lengths) == batch.size());
    const std::int64_t total = total_units(batch, lengths);
    HETSEQ_ASSERT(std::accumulate(units.begin(), units.end(), std::int64_t{0}) == total);

    std::vector<Slice> slices;
    std::int64_t position = batch.begin;
    std::int64_t taken = 0;   // units before `position`
    std::int64_t target = 0;  // units of this rank and those before it
    for (const std::int64_t share : units) {
        HETSEQ_ASSERT(share >= 0);
        target += share;
        const std::int64_t begin = position;
        while (share > 0 && position < batch.end) {
            const std::int64_t length = length_at(lengths, position - batch.begin);
            // A sample that straddles the target goes to the side that holds more of it.
            if (target < total && taken + length - target > target - taken)
                break;
            taken += length;
            ++position;
        }
        slices.push_back({begin, position});
    }
    return slices;
}

std::vector<Slice> cut_into_micro_batches(const Slice& slice, std::int64_t micro_batch) {
    if (slice.size() == 0)
        return {};
    HETSEQ_ASSERT(micro_batch >= 1);
    const std::int64_t count = (slice.size() + micro_batch - 1) / micro_batch;
    std::vector<Slice> cuts;
    std::int64_t begin = slice.begin;
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t size = slice.size() / count + (i < slice.size() % count ? 1 : 0);
        cuts.push_back({begin, begin + size});
        begin += size;
    }
    return cuts;
}

}  // namespace hetseq
