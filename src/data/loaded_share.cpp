#include "hetseq/data/loaded_share.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

constexpr const char* mend = "choose a batching that fits the model, or mend Collator::collate";

// What only a mistake in a collator, or one that belongs to another model, can bring.
void check_collated(const MicroBatch& batch, std::size_t loss_terms) {
    if (batch.weights.size() != loss_terms)
        throw BadConfig("the batching does not fit the model",
                        "it gave " + std::to_string(batch.weights.size()) +
                            " weights for a micro-batch, and the model has " +
                            std::to_string(loss_terms) + " loss terms",
                        mend);
    for (const double weight : batch.weights) {
        if (!std::isfinite(weight) || weight < 0)
            throw BadConfig("the batching gave a weight of " + format_number(weight),
                            "a loss is divided by the sum of its weights",
                            mend);
    }
    for (const auto& [name, tensor] : batch.tensors) {
        if (!tensor.defined() || !tensor.is_cpu())
            throw BadConfig("the batching gave no tensor in host memory for '" + name + "'",
                            "the loader copies tensors to the device itself",
                            mend);
    }
}

}  // namespace

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
    for (const MicroBatch& part : micro_batches_)
        std::transform(weights_.begin(),
                       weights_.end(),
                       part.weights.begin(),
                       weights_.begin(),
                       std::plus<>());
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
    const at::Tensor ids = rows_.sample_ids.narrow(0, slice.begin, slice.size());
    MicroBatch batch = target_.collator->collate(rows, ids);
    check_collated(batch, target_.loss_terms);
    batch.sample_ids = ids;
    batch.samples = batch.units = slice.size();
    return batch;
}

void LoadedShare::arrive() {
    if (arrival_)
        std::exchange(arrival_, nullptr)->wait(micro_batches_);
}

}  // namespace hetseq
