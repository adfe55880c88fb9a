#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetseq {

/// Cost units of the sample at a position of an epoch's order: 1 each for samples, target tokens
/// for text. Empty: one unit each.
using LengthsView = std::span<const std::int64_t>;

/// The samples of one update: positions [begin, end) of the epoch's order.
struct GlobalBatch {
    std::int64_t update = 0;  // counted from 0 over all epochs
    std::int64_t epoch = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
};

/// Which samples form which update: a function of the corpus and the global batch size alone, never
/// of ranks, speeds or memory. An epoch's last batch holds what is left.
class BatchPlan {
public:
    /// `samples` >= 1, `batch_size` >= 1 (larger than `samples`: an epoch is one batch).
    BatchPlan(std::int64_t samples, std::int64_t batch_size);

    std::int64_t samples() const noexcept { return samples_; }
    std::int64_t batch_size() const noexcept { return batch_size_; }
    std::int64_t batches_per_epoch() const noexcept;
    GlobalBatch batch(std::int64_t update) const;

private:
    std::int64_t samples_;
    std::int64_t batch_size_;
};

/// One rank's part of a global batch: positions [begin, end), possibly none.
struct Slice {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
    friend bool operator==(const Slice&, const Slice&) = default;
};

/// Cuts `batch` contiguously in rank order so that rank r takes `units[r]` cost units (sum = the
/// batch's units), to within one sample where samples cost more than one unit. `lengths`: of the
/// batch's positions, from `batch.begin` on.
std::vector<Slice> cut_by_rank(const GlobalBatch& batch,
                               std::span<const std::int64_t> units,
                               LengthsView lengths = {});

/// Cuts a rank's slice into micro-batches of at most `micro_batch` samples, as even as they can be.
/// Empty for an empty slice.
std::vector<Slice> cut_into_micro_batches(const Slice& slice, std::int64_t micro_batch);

}  // namespace hetseq
