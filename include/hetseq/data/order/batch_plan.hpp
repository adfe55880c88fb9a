#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hetseq/data/order/batch_items.hpp"

namespace hetseq {

class WindowPlan;

/// The samples of one update.
struct GlobalBatch {
    std::int64_t update = 0;  // counted from 0 over all epochs
    std::int64_t epoch = 0;
    // Of rows of one shape: positions [begin, end) of the epoch's order. Of samples of unequal
    // length: all of `items`, [0, end).
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool is_full = true;       // false: what was left for an epoch's last batch
    std::int64_t window = 0;   // of `items`: the last group of blocks that they come from
    bool ends_window = false;  // of `items`: the next batch is of another window
    std::shared_ptr<const BatchItems> items = nullptr;  // null: rows of one shape

    std::int64_t size() const noexcept { return end - begin; }  // samples
    /// The work in it: samples, or the units of samples of unequal length.
    std::int64_t units() const { return items ? items->total_units() : size(); }
};

/// Which samples form which update: a function of the corpus, the global batch's size and, where
/// samples have unequal lengths, the seed; never of ranks, speeds or memory. An epoch's last batch
/// holds what is left.
class BatchPlan {
public:
    /// Rows of one shape, batches of consecutive positions. `samples` >= 1, `batch_size` >= 1
    /// (larger than `samples`: an epoch is one batch).
    BatchPlan(std::int64_t samples, std::int64_t batch_size);
    /// Samples of unequal length.
    explicit BatchPlan(std::shared_ptr<WindowPlan> windows);

    std::int64_t samples() const noexcept { return samples_; }  // an epoch
    std::int64_t batches_per_epoch() const noexcept;
    /// Of a full batch: samples, or units where batches are counted in them.
    std::int64_t full_batch() const noexcept;
    bool ends_epoch(std::int64_t update) const { return (update + 1) % batches_per_epoch() == 0; }
    /// Where samples have unequal lengths it may wait until these are read.
    GlobalBatch batch(std::int64_t update) const;

private:
    std::int64_t samples_ = 0;
    std::int64_t batch_size_ = 0;
    std::shared_ptr<WindowPlan> windows_;
};

/// One rank's part of a global batch: [begin, end) of its positions or items, possibly none.
struct Slice {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
    friend bool operator==(const Slice&, const Slice&) = default;
};

/// Cuts `batch`, of rows of one shape, contiguously in rank order: rank r takes `units[r]` of them
/// (sum = the batch's size).
std::vector<Slice> cut_by_rank(const GlobalBatch& batch, std::span<const std::int64_t> units);
/// The same for samples of unequal length: each rank's part of the batch's cost is its part of the
/// units, within one sample (`cut_items`). `item_costs`: of each of the batch's items.
std::vector<Slice> cut_by_rank(const GlobalBatch& batch,
                               std::span<const std::int64_t> units,
                               std::span<const double> item_costs);

}  // namespace hetseq
