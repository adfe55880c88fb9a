#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hetseq/data/blocks/io_mode.hpp"
#include "hetseq/data/corpus_identity.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/order/global_order.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

class DataContext;

struct CorpusOptions {
    std::int64_t shuffle_blocks = 8;  // blocks mixed at once
    std::int64_t block_length =
        0;  // samples; 0: from the data (recorded, since it defines the order)
    std::int64_t cache_mb = 512;  // of each host, this corpus [MiB]; changes speed only
    IoMode io = IoMode::collective;
    std::int64_t max_length = 0;  // values of a row of a sample that is used; 0: any
    bool skip_too_long = false;   // leave longer samples out; otherwise they are an error
};

/// A sharded corpus: its shards' samples laid end to end in file-name order, cut into blocks of
/// consecutive samples, read through a cache of blocks that the ranks of a host share.
class Corpus {
public:
    struct Impl;

    /// Collective. `spec`: a file, a folder (its *.h5, *.hdf5), a glob, or several of them
    /// separated by commas. Checks all headers against `schema`, and the offsets of ragged fields;
    /// throws on all ranks BadData (for a sample that is too long too), MissingInput or IoError
    /// that names file, dataset and what was expected, and BadConfig where the cache cannot hold
    /// the blocks that are mixed at once.
    Corpus(DataContext& context,
           const std::string& spec,
           const CorpusSchema& schema,
           const CorpusOptions& options);
    /// Collective over the ranks of a host, unless an exception unwinds.
    ~Corpus();
    Corpus(const Corpus&) = delete;
    Corpus& operator=(const Corpus&) = delete;

    std::int64_t samples() const noexcept;
    std::int64_t block_length() const noexcept;  // samples
    GlobalOrder::Geometry geometry() const noexcept;
    /// True if any field is ragged.
    bool is_ragged() const noexcept { return ragged_fields() > 0; }
    std::size_t ragged_fields() const noexcept;
    /// True if work is counted in values of a ragged field, and not in samples.
    bool counts_units() const noexcept;
    /// The lengths that the offsets of the ragged fields tell; empty where there are none.
    const RaggedExtents& extents() const noexcept;
    /// Row shapes as the files have them, by field; {-1} where it is ragged.
    std::map<std::string, std::vector<std::int64_t>> row_shapes() const;
    /// Collective. Which data these are; `before`, what is known of them, may be null. Reads a few
    /// rows; throws IoError on all ranks. See `identify_corpus`.
    CorpusIdentity identity(const CorpusIdentity* before) const;
    /// Blocks this host has read so far.
    std::int64_t blocks_read() const noexcept;
    /// Blocks this host can hold at once.
    std::int64_t cached_blocks() const noexcept;
    /// Memory of this host's cache when it is full.
    std::int64_t cache_bytes() const noexcept;
    const std::shared_ptr<Impl>& impl() noexcept { return impl_; }

private:
    std::shared_ptr<Impl> impl_;
    int exceptions_at_start_;
};

}  // namespace hetseq
