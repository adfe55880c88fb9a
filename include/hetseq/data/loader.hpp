#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "hetseq/data/batch_plan.hpp"
#include "hetseq/data/collator.hpp"
#include "hetseq/data/global_order.hpp"
#include "hetseq/data/micro_batch.hpp"

namespace hetseq {

class HostComm;
class IoThread;

enum class IoMode { collective, independent, serial };

struct CorpusOptions {
    std::int64_t shuffle_blocks = 8;  // blocks mixed at once
    std::int64_t block_length =
        0;  // samples; 0: from the data (recorded, since it defines the order)
    std::int64_t cache_mb = 512;  // of each host, this corpus [MiB]; changes speed only
    IoMode io = IoMode::collective;
};

/// Everything ranks share to read: made once at start, before any corpus, on the main thread.
class DataContext {
public:
    struct Impl;
    /// Collective over `world`. `threads_may_call_mpi`: MPI_THREAD_MULTIPLE was given; otherwise
    /// blocks are read by the caller of `Loader::take`.
    DataContext(const HostComm& world, bool threads_may_call_mpi);
    ~DataContext();
    Impl& impl() noexcept { return *impl_; }

private:
    std::unique_ptr<Impl> impl_;
};

/// A sharded corpus: its shards' samples laid end to end in file-name order, cut into blocks of
/// consecutive samples, read through a cache of blocks that the ranks of a host share.
class Corpus {
public:
    struct Impl;

    /// Collective. `spec`: a file, a folder (its *.h5, *.hdf5), a glob, or several of them
    /// separated by commas. Opens every shard and checks all headers against `schema`; throws on
    /// all ranks BadData, MissingInput or IoError that names file, dataset and what was expected.
    Corpus(DataContext& context,
           const std::string& spec,
           const CorpusSchema& schema,
           const CorpusOptions& options);
    ~Corpus();

    std::int64_t samples() const noexcept;
    std::int64_t block_length() const noexcept;  // samples
    GlobalOrder::Geometry geometry() const noexcept;
    /// Row shape of a field as the files have it.
    std::vector<std::int64_t> row_shape(const std::string& field) const;
    Impl& impl() noexcept { return *impl_; }

private:
    std::unique_ptr<Impl> impl_;
};

/// This rank's part of one global batch, collated.
class LoadedShare {
public:
    const std::vector<MicroBatch>& micro_batches() const noexcept { return micro_batches_; }
    const std::vector<double>& weights() const noexcept {
        return weights_;
    }  // summed, by loss term; zeros for an empty share
    std::int64_t samples() const noexcept { return slice_.size(); }
    std::int64_t units() const noexcept;
    const GlobalBatch& batch() const noexcept { return batch_; }
    double wait_ms() const noexcept { return wait_ms_; }  // that `Loader::take` waited for it

    /// Cuts the same samples again into micro-batches of at most `micro_batch`; the weights stay.
    void recut(std::int64_t micro_batch);

private:
    friend class Loader;
    std::vector<MicroBatch> micro_batches_;
    std::vector<double> weights_;
    GlobalBatch batch_;
    Slice slice_;
    TensorDict rows_;
    at::Tensor sample_ids_;
    const Collator* collator_ = nullptr;
    at::Device device_ = at::kCPU;
    double wait_ms_ = 0;
};

/// Loads this rank's shares of global batches ahead of their use, in the order they were requested.
class Loader {
public:
    struct Impl;
    struct Options {
        std::uint64_t seed = 1;
        Shuffle shuffle = Shuffle::yes;
        at::Device device = at::kCPU;  // micro-batches end up here
        std::size_t loss_terms = 1;    // length of the weights
    };

    /// Collective over the ranks of a host. `corpus` and `collator` must outlive the loader.
    Loader(Corpus& corpus, const Collator& collator, const Options& options);
    ~Loader();

    /// Starts loading. Every rank makes the same requests in the same order over all loaders of the
    /// job: `slices` are all ranks' parts of `batch`, by rank, and `micro_batch` is this rank's cap
    /// (samples).
    void request(const GlobalBatch& batch, std::span<const Slice> slices, std::int64_t micro_batch);
    /// The oldest requested share, once loaded. Throws BadData or IoError, on all ranks of the
    /// host, when a block was bad.
    LoadedShare take();
    /// Requests not yet taken.
    std::size_t outstanding() const noexcept;

private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace hetseq
