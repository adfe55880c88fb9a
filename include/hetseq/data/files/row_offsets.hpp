#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

namespace hetseq {

/// Where consecutive rows of a shard begin, and then where the last one ends. It is ordered by
/// ragged field, as in the schema, then by row.
using RowOffsets = std::vector<std::vector<std::int64_t>>;

/// A row that cannot be used, and why.
struct BadRow {
    std::int64_t row = 0;  // of the shard; its number of samples where the last offset is bad
    BadData error;
};

/// The first of `rows` whose offsets are bad. Offsets are bad if they do not begin at 0, fall, run
/// past the end, or do not end at the number of values. They are also bad if a row is too long
/// or too short, ends inside of a position, or is not as long as in the field that it must agree
/// with. Returns nothing if all are good; then all rows lie within the values.
std::optional<BadRow> first_bad_row(const ShardSet& shards,
                                    const ShardRows& rows,
                                    const RowOffsets& offsets);

/// Reads the offsets of `rows` from `dataset` without checking them, on this rank by itself.
/// `field` is the index of the ragged field in the schema. Throws IoError.
std::vector<std::int64_t> read_offsets(const ShardSet& shards,
                                       const ShardRows& rows,
                                       std::size_t field,
                                       hid_t dataset);

/// Reads the offsets of a shard, on this rank alone. It holds one chunk of each ragged field, so
/// each chunk is decompressed once if rows are read in order.
class OffsetsFile {
public:
    /// Throws IoError.
    OffsetsFile(const ShardSet& shards, std::size_t shard);

    std::size_t shard() const noexcept { return shard_; }
    /// The offsets of rows [begin, end) of the shard, checked. Throws BadData or IoError.
    RowOffsets read(std::int64_t begin, std::int64_t end) const;
    /// The same, unchecked. Throws IoError.
    RowOffsets read_any(std::int64_t begin, std::int64_t end) const;

private:
    const ShardSet& shards_;
    std::size_t shard_;
    Hdf5File file_;
    std::vector<Hdf5Dataset> datasets_;  // by ragged field; closed before the file
};

}  // namespace hetseq
