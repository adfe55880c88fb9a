#include "hetseq/data/loaded_share.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "hetseq/util/error.hpp"

namespace hetseq {

LoadedShare::LoadedShare(const GlobalBatch& batch,
                         const Slice& slice,
                         Rows rows,
                         Target target,
                         std::int64_t micro_batch)
    : batch_{batch},
      slice_{slice},
      rows_{std::move(rows)},
      target_{std::move(target)},
      weights_(target_.loss_terms, 0.0) {
    collate(micro_batch);
    for (const MicroBatch& part : micro_batches_) {
        HETSEQ_ASSERT(part.weights.size() == weights_.size());
        std::transform(weights_.begin(),
                       weights_.end(),
                       part.weights.begin(),
                       weights_.begin(),
                       std::plus<>());
    }
}

std::int64_t LoadedShare::units() const noexcept {
    std::int64_t units = 0;
    for (const MicroBatch& part : micro_batches_)
        units += part.units;
    return units;
}

void LoadedShare::recut(std::int64_t micro_batch) {
    collate(micro_batch);
    arrive();
}

void LoadedShare::collate(std::int64_t micro_batch) {
    micro_batches_.clear();
    for (const Slice& part : cut_into_micro_batches({0, slice_.size()}, micro_batch))
        micro_batches_.push_back(collate_slice(part));
    arrival_ = micro_batches_.empty() ? nullptr : target_.transfer->send(micro_batches_);
}

MicroBatch LoadedShare::collate_slice(const Slice& slice) const {
    TensorDict rows;
    for (const auto& [name, tensor] : rows_.fields)
        rows[name] = tensor.narrow(0, slice.begin, slice.size());
    return target_.collator->collate(rows, rows_.sample_ids.narrow(0, slice.begin, slice.size()));
}

void LoadedShare::arrive() {
    if (arrival_)
        std::exchange(arrival_, nullptr)->wait(micro_batches_);
}

}  // namespace hetseq
