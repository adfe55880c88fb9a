#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <c10/core/Device.h>

#include "hetseq/data/corpus.hpp"
#include "hetseq/data/data_context.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/data/loading/collator.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/global_order.hpp"

namespace hetseq {

/// Loads this rank's shares of global batches ahead of their use, in the order they were requested.
class Loader {
public:
    struct Impl;
    struct Options {
        std::uint64_t seed = 1;
        Shuffle shuffle = Shuffle::yes;  // data that are trained on are
        at::Device device = at::kCPU;    // micro-batches end up here
        std::size_t loss_terms = 1;      // length of the weights
    };

    /// `corpus` and `collator` must outlive the loader.
    Loader(Corpus& corpus, const Collator& collator, const Options& options);
    /// Requests may be outstanding if all ranks of the host destroy their loaders.
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    /// Starts loading. `slices` are all ranks' parts of `batch`, by rank, and `cap` is what this
    /// rank's micro-batches may hold. Every rank makes the same requests in the same order over all
    /// loaders of the job, and takes the shares in the same order.
    void request(const GlobalBatch& batch, std::span<const Slice> slices, const MicroBatchCap& cap);
    /// Waits for the oldest requested share and returns it. Throws BadData or IoError on all ranks
    /// of the host if a block was bad, and in all calls after that.
    LoadedShare take();
    /// Requests not yet taken.
    std::size_t outstanding() const noexcept;

private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
