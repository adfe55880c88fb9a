#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/collator.hpp"
#include "hetseq/data/device_transfer.hpp"
#include "hetseq/data/micro_batch.hpp"
#include "hetseq/data/order/batch_plan.hpp"

namespace hetseq {

/// This rank's part of one global batch, collated.
class LoadedShare {
public:
    /// The part's samples, uncollated.
    struct Rows {
        TensorDict fields;      // by name, (n, row shape...)
        at::Tensor sample_ids;  // (n) int64
    };
    /// How they are collated and where they go.
    struct Target {
        const Collator* collator = nullptr;
        std::shared_ptr<DeviceTransfer> transfer;
        std::size_t loss_terms = 1;
    };

    LoadedShare(const GlobalBatch& batch,
                const Slice& slice,
                Rows rows,
                Target target,
                std::int64_t micro_batch);

    const std::vector<MicroBatch>& micro_batches() const noexcept { return micro_batches_; }
    /// Summed, by loss term; zeros for an empty share.
    const std::vector<double>& weights() const noexcept { return weights_; }
    std::int64_t samples() const noexcept { return slice_.size(); }
    std::int64_t units() const noexcept;
    const GlobalBatch& batch() const noexcept { return batch_; }
    double wait_ms() const noexcept { return wait_ms_; }  // that `Loader::take` waited for it

    /// Cuts the same samples again into micro-batches of at most `micro_batch`; the weights stay.
    void recut(std::int64_t micro_batch);

private:
    friend class Loader;
    void collate(std::int64_t micro_batch);
    MicroBatch collate_slice(const Slice& slice) const;
    void arrive();

    GlobalBatch batch_;
    Slice slice_;
    Rows rows_;
    Target target_;
    std::vector<MicroBatch> micro_batches_;
    std::vector<double> weights_;
    std::unique_ptr<Arrival> arrival_;  // null once waited for
    double wait_ms_ = 0;
};

}  // namespace hetseq
