#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/hdf5.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

/// Where consecutive rows of a shard begin, and behind them where the last ends: by ragged field in
/// the schema's order, then by row.
using RowOffsets = std::vector<std::vector<std::int64_t>>;

/// A row that cannot be used, and why.
struct BadRow {
    std::int64_t row = 0;  // of the shard; its number of samples where the last offset is bad
    BadData error;
};

/// The first of `rows` whose offsets are bad: they begin elsewhere than at 0, fall, run past the
/// end or do not end at the number of values; a row is longer than it may be, or not as long as in
/// the field that it must agree with. Nothing where all are good: then they lie within the values.
std::optional<BadRow> first_bad_row(const ShardSet& shards,
                                    const ShardRows& rows,
                                    const RowOffsets& offsets);

/// Reads the offsets of `rows` from `dataset`, those of ragged field `field` (its index in the
/// schema), whatever they are, on this rank by itself. Throws IoError.
std::vector<std::int64_t> read_offsets(const ShardSet& shards,
                                       const ShardRows& rows,
                                       std::size_t field,
                                       hid_t dataset);

/// The offsets of a shard, read on this rank alone. Holds one chunk of each ragged field, so that
/// rows read in order have each chunk decompressed once.
class OffsetsFile {
public:
    /// Throws IoError.
    OffsetsFile(const ShardSet& shards, std::size_t shard);

    std::size_t shard() const noexcept { return shard_; }
    /// Of rows [begin, end) of the shard, checked. Throws BadData or IoError.
    RowOffsets read(std::int64_t begin, std::int64_t end) const;
    /// As `read`, unchecked.
    RowOffsets read_any(std::int64_t begin, std::int64_t end) const;

private:
    const ShardSet& shards_;
    std::size_t shard_;
    Hdf5File file_;
    std::vector<Hdf5Dataset> datasets_;  // by ragged field; closed before the file
};

}  // namespace hetseq
