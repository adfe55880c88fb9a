#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/loading/collator.hpp"
#include "hetseq/data/loading/device_transfer.hpp"
#include "hetseq/data/loading/micro_batch.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/micro_batch_cap.hpp"

namespace hetseq {

/// This rank's part of one global batch, collated.
class LoadedShare {
public:
    /// The part's samples, uncollated.
    struct Rows {
        TensorDict fields;  // by name, (n, row shape...); ragged ones as collators get them
        std::vector<std::string> ragged;  // their names
        at::Tensor sample_ids;            // (n) int64
    };
    /// How the samples are collated, and where they go.
    struct Target {
        const Collator* collator = nullptr;
        std::shared_ptr<DeviceTransfer> transfer;
        std::size_t loss_terms = 1;
        bool trains = false;
    };

    /// Begins: the collator hears of the samples.
    LoadedShare(const GlobalBatch& batch,
                const Slice& slice,
                Rows rows,
                Target target,
                const MicroBatchCap& cap);
    /// Makes the micro-batches. Once, before anything else is asked for.
    void collate();

    const std::vector<MicroBatch>& micro_batches() const noexcept { return micro_batches_; }
    /// One of them, ready for the model: where the device had no memory to copy it ahead, it is
    /// copied now. Throws c10::OutOfMemoryError if there is still none.
    MicroBatch on_device(const MicroBatch& micro_batch) const;
    /// The micro-batches' weights, summed, by loss term; zeros for an empty share.
    const std::vector<double>& weights() const noexcept { return weights_; }
    std::int64_t samples() const noexcept { return slice_.size(); }
    std::int64_t units() const noexcept;
    /// The number of values in the rows without and with padding, summed over ragged fields.
    struct Padding {
        std::int64_t values = 0;
        std::int64_t padded_values = 0;
    };
    Padding padding() const;
    const GlobalBatch& batch() const noexcept { return batch_; }
    const Slice& slice() const noexcept { return slice_; }  // of the batch
    double wait_ms() const noexcept { return wait_ms_; }    // how long `Loader::take` waited

    /// Cuts the same samples again into micro-batches within `cap` and within the one that they
    /// were loaded with; the weights stay.
    void recut(const MicroBatchCap& cap);
    /// Whether a micro-batch that can be cut, one of several samples, is larger than `cap`.
    bool exceeds(const MicroBatchCap& cap) const;

private:
    friend class Loader;
    void collate(const MicroBatchCap& cap);
    std::int64_t announce() const;
    void note_groups();
    BatchGroups groups_in(const Slice& slice) const;
    std::vector<Slice> cut(const MicroBatchCap& cap) const;
    MicroBatch collate_slice(const Slice& slice) const;
    TensorDict rows_of(const Slice& slice) const;
    void arrive();

    GlobalBatch batch_;
    Slice slice_;
    Rows rows_;
    Target target_;
    MicroBatchCap cap_;                  // that the share was loaded with
    std::vector<std::int64_t> lengths_;  // of each sample's longest row; empty: rows of one shape
    std::vector<Slice> groups_;          // of the share's samples, from 0; empty: none
    std::int64_t first_group_ = 0;       // the number in the batch of the first of them
    std::int64_t total_groups_ = 0;      // of the batch
    std::vector<Slice> cuts_;            // of the micro-batches, from 0
    std::int64_t announced_ = 0;         // `Collation::announced` of the next collation
    std::vector<MicroBatch> micro_batches_;
    std::vector<double> weights_;
    std::unique_ptr<Arrival> arrival_;  // null once waited for
    double wait_ms_ = 0;
};

}  // namespace hetseq
