#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hetseq/data/corpus_identity.hpp"
#include "hetseq/data/corpus_options.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/order/global_order.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

class DataContext;

/// A corpus in shards. The shards' samples lie end to end in the order of the file names. They are
/// cut into blocks of consecutive samples. The ranks of a host share a cache of blocks.
class Corpus {
public:
    struct Impl;

    /// Collective. `spec` is what `schema` locates, or names a file, a folder (its *.h5, *.hdf5), a
    /// glob, or several of them separated by commas. Checks all headers against `schema`, and the
    /// offsets of ragged fields. Errors are thrown on all ranks. BadData, MissingInput and IoError
    /// name the file, the dataset and what was expected; BadData also means a sample that is too
    /// long. BadConfig means that the cache cannot hold the blocks that are mixed at once.
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
    /// True if the lengths of rows plan batches.
    bool is_ragged() const;
    /// What an epoch takes of each set, as a table; "" without weights. `names`: those of the spec.
    std::string weights_report(std::span<const std::string> names) const;
    std::size_t ragged_fields() const noexcept;
    /// True if work is counted in values of a ragged field; false if it is counted in samples.
    bool counts_units() const noexcept;
    /// What the offsets of the ragged fields tell; empty where there are no such fields.
    const RaggedExtents& extents() const noexcept;
    /// Row shapes as the files have them, by field; {-1} where it is ragged.
    std::map<std::string, std::vector<std::int64_t>> row_shapes() const;
    /// Collective. The identity of these data. `before` is an identity that is known already, or
    /// null. Reads a few rows; throws IoError on all ranks. See `identify_corpus`.
    CorpusIdentity identity(const CorpusIdentity* before) const;
    /// Blocks this host has read so far.
    std::int64_t blocks_read() const noexcept;
    /// Memory of this host's cache when it is full.
    std::int64_t cache_bytes() const noexcept;
    const std::shared_ptr<Impl>& impl() noexcept { return impl_; }

private:
    std::shared_ptr<Impl> impl_;
    int exceptions_at_start_;
};

}  // namespace hetseq
