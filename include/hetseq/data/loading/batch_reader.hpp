#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/block_reader.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/loading/collator.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

class HostComm;

/// Collective. `schema` without the targets (`FieldSchema::is_target`) that the first shard of
/// `spec` lacks. Throws as `open_shard_set`.
CorpusSchema without_missing_targets(const HostComm& world,
                                     const std::string& spec,
                                     CorpusSchema schema);

/// Reads a corpus in the order of its files, each rank what it likes: blocks of some batches of
/// consecutive samples. Which samples form a batch depends on the batch's size alone. Uses HDF5 on
/// the calling thread.
class BatchReader {
public:
    /// Collective over `world`: opens the corpus as `open_shard_set`. A block is small enough that
    /// there are many for each rank.
    BatchReader(const HostComm& world,
                const std::string& spec,
                const CorpusSchema& schema,
                std::int64_t batch_samples);
    BatchReader(const BatchReader&) = delete;
    BatchReader& operator=(const BatchReader&) = delete;

    std::int64_t samples() const noexcept { return shards_.samples(); }
    std::int64_t blocks() const noexcept;

    /// The batches of `block`, collated, in order. The first sample id of each is its first
    /// sample's place. On this rank alone. Throws BadData or IoError that names file, dataset and
    /// row.
    std::vector<MicroBatch> read(std::int64_t block, const Collator& collator);

private:
    MicroBatch make_batch(std::int64_t block,
                          std::int64_t begin,
                          std::int64_t end,
                          const Collator& collator) const;

    ShardSet shards_;
    std::int64_t batch_samples_;
    BlockLayout layout_;
    BlockReader reader_;
    std::vector<std::byte> slot_;
};

}  // namespace hetseq
