#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hetseq/data/order/batch_items.hpp"

namespace hetseq {

class WindowPlan;

/// [begin, end) of positions or items, possibly none: one rank's part of a global batch, or a
/// group.
struct Slice {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
    friend bool operator==(const Slice&, const Slice&) = default;
};

/// The samples of one update.
struct GlobalBatch {
    std::int64_t update = 0;  // counted from 0 over all epochs
    std::int64_t epoch = 0;
    // The batch has positions [begin, end) of the epoch's order. Where samples have unequal
    // lengths, it has all of `items`, [0, end).
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool is_full = true;       // false: an epoch's last batch, with what was left
    std::int64_t window = 0;   // the last group of blocks that `items` come from
    bool ends_window = false;  // the next batch has another `window`
    std::shared_ptr<const BatchItems> items = nullptr;  // null: rows of one shape
    // The samples that a model looks at together, from 0, end to end: no cut divides one. Null: it
    // looks at each by itself.
    std::shared_ptr<const std::vector<Slice>> groups = nullptr;

    std::int64_t size() const noexcept { return end - begin; }  // samples
    /// The work in it: samples, or the units of samples of unequal length.
    std::int64_t units() const { return items ? items->total_units() : size(); }
};

/// Decides which samples form which update. This depends only on the corpus, the size of the global
/// batch and, where samples have unequal lengths, the seed. It never depends on ranks, speeds or
/// memory. An epoch's last batch holds what is left.
class BatchPlan {
public:
    /// For rows of one shape: batches have consecutive positions. `samples` >= 1, `batch_size`
    /// >= 1. If it is larger than `samples`, an epoch is one batch.
    BatchPlan(std::int64_t samples, std::int64_t batch_size);
    /// For samples of unequal length.
    explicit BatchPlan(std::shared_ptr<WindowPlan> windows);

    std::int64_t samples() const noexcept { return samples_; }  // an epoch
    std::int64_t batches_per_epoch() const noexcept;
    /// The size of a full batch: samples, or units where batches are counted in them.
    std::int64_t full_batch() const noexcept;
    bool ends_epoch(std::int64_t update) const { return (update + 1) % batches_per_epoch() == 0; }
    /// If samples have unequal lengths, it may wait until the lengths are read.
    GlobalBatch batch(std::int64_t update) const;
    /// From now on a batch is made of groups of about `size` >= 1 samples (`groups_of`).
    void set_groups(std::int64_t size);
    /// The same of an epoch of rows of one shape: its groups do not depend on the size of batches,
    /// which hold as many whole groups as fit in one.
    void set_groups_of_epoch(std::int64_t size);
    std::int64_t group_size() const noexcept { return group_size_; }  // 0: no groups
    /// The most samples that a group of any batch has. 0: no groups.
    std::int64_t largest_group() const;

private:
    GlobalBatch batch_of_groups(std::int64_t update) const;

    std::int64_t samples_ = 0;
    std::int64_t batch_size_ = 0;
    std::int64_t group_size_ = 0;
    std::vector<Slice> epoch_groups_;  // empty: groups are made of each batch
    std::shared_ptr<WindowPlan> windows_;
};

/// Cuts `batch`, of rows of one shape, contiguously in rank order: rank r takes `units[r]` of them
/// (sum = the batch's size), or the groups that are nearest to that (`divide_items`).
std::vector<Slice> cut_by_rank(const GlobalBatch& batch, std::span<const std::int64_t> units);
/// The same for samples of unequal length: each rank's part of the batch's cost is its part of the
/// units, within one sample or one group (`cut_items`). `item_costs`: of each of the batch's items.
std::vector<Slice> cut_by_rank(const GlobalBatch& batch,
                               std::span<const std::int64_t> units,
                               std::span<const std::int64_t> item_costs);

}  // namespace hetseq
