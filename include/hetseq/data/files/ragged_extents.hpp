#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "hetseq/data/files/row_offsets.hpp"
#include "hetseq/data/row_lengths.hpp"

namespace hetseq {

class HostComm;
class ShardSet;

/// What one pass over a corpus's offsets tells.
struct RaggedExtents {
    // By ragged field: values of the corpus before each block; blocks + 1 of them.
    std::vector<std::vector<std::int64_t>> borders;
    std::vector<std::int64_t>
        longest;  // by ragged field, of samples that are not too long [values]
    // By ragged field, of the same samples: the sum of their rows' squared lengths.
    std::vector<std::int64_t> squares;
    std::vector<std::int64_t> block_samples;  // by block: samples that are not too long
    // By block: values of the units field in these; these samples where there is no such field.
    std::vector<std::int64_t> block_units;
    std::int64_t too_long = 0;         // samples with a longer row than `max_length` in any field
    std::int64_t first_too_long = -1;  // the first of them; -1: none
};

/// Collective over `world`; each rank reads the offsets of some blocks, in pieces of some MB.
/// `max_length`: of a row that is not too long [values]; 0: any. Checks every offset as
/// `first_bad_row` does. The first error in file order is thrown on all ranks: BadData or IoError.
/// Uses HDF5 on the calling thread.
RaggedExtents read_extents(const HostComm& world,
                           const ShardSet& shards,
                           std::int64_t block_length,
                           std::int64_t max_length);

/// Reads lengths on this rank alone, without communication. Used by the I/O thread alone.
class LengthReader {
public:
    explicit LengthReader(const ShardSet& shards);

    /// Of samples [begin, end) of the corpus. Throws BadData, where a file changed too, or IoError.
    RowLengths read(std::int64_t begin, std::int64_t end);
    /// Closes all files.
    void close() { open_.clear(); }

private:
    const OffsetsFile& open(std::size_t shard);

    const ShardSet& shards_;
    std::list<OffsetsFile> open_;  // most recently used first
};

}  // namespace hetseq
