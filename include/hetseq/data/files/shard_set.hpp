#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/files/shard_header.hpp"
#include "hetseq/data/files/shard_spec.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

class HostComm;

struct Shard {
    std::string path;
    ShardHeader header;
    FileStamp stamp;          // as this rank saw the file at start
    std::int64_t offset = 0;  // of its first sample in the corpus
    // The place of its first value among the corpus's values, by ragged field in the schema's
    // order.
    std::vector<std::int64_t> value_offsets{};
    std::int64_t name = 0;  // the place of the name in the spec that names it
    std::int64_t samples() const noexcept { return header.samples; }
};

/// Rows [begin, end) of one shard.
struct ShardRows {
    std::size_t shard = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
    friend bool operator==(const ShardRows&, const ShardRows&) = default;
};

/// The shards of a corpus in the order of their names; their samples lie end to end.
class ShardSet {
public:
    /// `shards` come with paths, headers and stamps; the constructor sets their offsets. Throws
    /// BadData if the shards do not fit together or hold no sample at all.
    ShardSet(std::vector<Shard> shards, CorpusSchema schema);

    const std::vector<Shard>& shards() const noexcept { return shards_; }
    const CorpusSchema& schema() const noexcept { return schema_; }
    std::int64_t samples() const noexcept { return samples_; }
    /// The ragged fields: their indices, in the schema's order.
    const std::vector<std::size_t>& ragged_fields() const noexcept { return ragged_fields_; }
    /// Values of field `field`, a ragged one, in all shards.
    std::int64_t values(std::size_t field) const;
    /// Row shape of field `field`, the same in all shards; empty for a ragged one.
    const std::vector<std::int64_t>& row_shape(std::size_t field) const;
    /// Samples [begin, end) of the corpus as rows of its shards, in order.
    std::vector<ShardRows> rows(std::int64_t begin, std::int64_t end) const;

private:
    std::vector<Shard> shards_;
    CorpusSchema schema_;
    std::vector<std::size_t> ragged_fields_;
    std::int64_t samples_ = 0;
};

/// Collective over `world`. Expands `spec` on rank 0, makes sure that every rank can read every
/// file, reads each header on one rank and shares it. All ranks throw the first error in file
/// order. Uses HDF5 on the calling thread.
ShardSet open_shard_set(const HostComm& world, const std::string& spec, const CorpusSchema& schema);

}  // namespace hetseq
