#include "hetseq/data/loaded_share.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/data/order/sample_groups.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

namespace {

constexpr const char* mend = "choose a batching that fits the model, or mend Collator::collate";

// Only a mistake in a collator, or a collator of another model, can fail this check.
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
                         const MicroBatchCap& cap)
    : batch_{batch},
      slice_{slice},
      rows_{std::move(rows)},
      target_{std::move(target)},
      cap_{cap},
      weights_(target_.loss_terms, 0.0) {
    if (batch_.items) {
        const std::vector<std::int64_t> all = padded_lengths(*batch_.items);
        lengths_.assign(all.begin() + slice_.begin, all.begin() + slice_.end);
    }
    note_groups();
    announced_ = announce();
}

void LoadedShare::collate() {
    collate(cap_);
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

LoadedShare::Padding LoadedShare::padding() const {
    Padding padding;
    if (!batch_.items)
        return padding;
    for (const std::vector<std::int32_t>& lengths : batch_.items->lengths)
        for (const Slice& cut : cuts_) {
            const auto begin = lengths.begin() + slice_.begin + cut.begin;
            const auto end = begin + cut.size();
            padding.values += std::accumulate(begin, end, std::int64_t{0});
            padding.padded_values += cut.size() * *std::max_element(begin, end);
        }
    return padding;
}

MicroBatch LoadedShare::on_device(const MicroBatch& micro_batch) const {
    return target_.transfer->bring(micro_batch);
}

void LoadedShare::recut(const MicroBatchCap& cap) {
    announced_ = announce();
    collate(smaller(cap_, cap));
    arrive();
}

bool LoadedShare::exceeds(const MicroBatchCap& cap) const {
    return std::any_of(micro_batches_.begin(), micro_batches_.end(), [&](const MicroBatch& part) {
        return part.is_divisible() &&
               (part.samples > cap.samples || part.padded_tokens > cap.tokens);
    });
}

// What of the batch's groups lies in the share: all of a group or nothing, where it is trained
// with.
void LoadedShare::note_groups() {
    if (!batch_.groups || slice_.size() == 0)
        return;
    const std::vector<Slice>& all = *batch_.groups;
    total_groups_ = std::ssize(all);
    const std::int64_t shift = batch_.begin - slice_.begin;
    for (std::int64_t k = 0; k < total_groups_; ++k) {
        const Slice& group = all[static_cast<std::size_t>(k)];
        const Slice own{std::max<std::int64_t>(group.begin + shift, 0),
                        std::min(group.end + shift, slice_.size())};
        if (own.size() <= 0)
            continue;
        if (groups_.empty())
            first_group_ = k;
        groups_.push_back(own);
    }
}

BatchGroups LoadedShare::groups_in(const Slice& slice) const {
    BatchGroups groups;
    groups.total = total_groups_;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (groups_[i].begin < slice.begin || groups_[i].end > slice.end)
            continue;
        if (groups.sizes.empty())
            groups.first = first_group_ + static_cast<std::int64_t>(i);
        groups.sizes.push_back(groups_[i].size());
    }
    return groups;
}

std::vector<Slice> LoadedShare::cut(const MicroBatchCap& cap) const {
    if (!groups_.empty())
        return cut_groups(groups_, lengths_, cap);
    if (!batch_.items)
        return cut_into_micro_batches(slice_.size(), cap);
    return cut_into_micro_batches(lengths_, cap);
}

std::int64_t LoadedShare::announce() const {
    if (slice_.size() == 0)
        return 0;
    return target_.collator->announce(rows_of({0, slice_.size()}),
                                      rows_.sample_ids,
                                      {.epoch = batch_.epoch, .trains = target_.trains});
}

void LoadedShare::collate(const MicroBatchCap& cap) {
    cuts_ = cut(cap);
    micro_batches_.clear();
    for (const Slice& part : cuts_)
        micro_batches_.push_back(collate_slice(part));
    arrival_ = micro_batches_.empty() ? nullptr : target_.transfer->send(micro_batches_);
}

TensorDict LoadedShare::rows_of(const Slice& slice) const {
    TensorDict rows;
    for (const std::string& name : rows_.ragged) {
        const at::Tensor offsets =
            rows_.fields.at(offsets_name(name)).narrow(0, slice.begin, slice.size() + 1);
        const auto begin = offsets[0].item<std::int64_t>();
        const auto end = offsets[slice.size()].item<std::int64_t>();
        rows[name] = rows_.fields.at(name).narrow(0, begin, end - begin);
        rows[offsets_name(name)] = offsets - begin;
    }
    for (const auto& [name, tensor] : rows_.fields)
        if (rows.count(name) == 0)
            rows[name] = tensor.narrow(0, slice.begin, slice.size());
    return rows;
}

MicroBatch LoadedShare::collate_slice(const Slice& slice) const {
    const at::Tensor ids = rows_.sample_ids.narrow(0, slice.begin, slice.size());
    MicroBatch batch = collated(*target_.collator,
                                rows_of(slice),
                                ids,
                                {.epoch = batch_.epoch,
                                 .trains = target_.trains,
                                 .announced = announced_,
                                 .first = slice.begin});
    check_collated(batch, target_.loss_terms);
    batch.sample_ids = ids;
    batch.samples = batch.units = slice.size();
    batch.groups = groups_in(slice);
    if (batch_.items) {
        const auto begin = slice_.begin + slice.begin;
        const auto& units = batch_.items->units;
        batch.units = std::accumulate(
            units.begin() + begin, units.begin() + begin + slice.size(), std::int64_t{0});
        batch.padded_tokens = padded_tokens(lengths_, std::vector<Slice>{slice});
    }
    return batch;
}

void LoadedShare::arrive() {
    if (arrival_)
        std::exchange(arrival_, nullptr)->wait(micro_batches_);
}

}  // namespace hetseq
