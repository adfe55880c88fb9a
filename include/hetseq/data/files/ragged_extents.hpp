#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/row_offsets.hpp"
#include "hetseq/data/row_lengths.hpp"

namespace hetseq {

class HostComm;
class ShardSet;

/// What the pass over the offsets of a corpus finds.
struct RaggedExtents {
    // By ragged field: the number of the corpus's values before each block; blocks + 1 entries.
    std::vector<std::vector<std::int64_t>> borders;
    std::vector<std::int64_t>
        longest;  // by ragged field, of samples that are not too long [positions]
    // By ragged field: the sum of the squared row lengths of the same samples.
    std::vector<std::int64_t> squares;
    std::vector<std::int64_t> block_samples;  // by block: samples that are not too long
    // By block: the positions of the units field in these samples, or their number without such a
    // field.
    std::vector<std::int64_t> block_units;
    std::int64_t max_length = 0;       // positions of a row; 0: any number
    bool is_models_limit = false;      // `max_length` is the schema's
    std::int64_t too_long = 0;         // samples with a longer row than `max_length` in any field
    std::int64_t first_too_long = -1;  // the first of them; -1: none
};

/// Collective over `world`; each rank reads the offsets of some blocks, a few MB at a time. A row
/// with more than `max_length` positions (0: any number), or more than the schema allows, is too
/// long. Fields that do not set lengths count as rows of length 0, but for `borders`.
/// Checks every offset as `first_bad_row` does. All ranks throw the first error in file order:
/// BadData or IoError. Uses HDF5 on the calling thread.
RaggedExtents read_extents(const HostComm& world,
                           const ShardSet& shards,
                           std::int64_t block_length,
                           std::int64_t max_length);

/// "3 of 40 samples are longer than 1024, the model's limit". There are some.
std::string too_long_text(const ShardSet& shards, const RaggedExtents& extents);

/// That text as an error, which names the first of them.
BadData too_long_error(const ShardSet& shards,
                       const RaggedExtents& extents,
                       const std::string& what_to_do);

/// Throws that error where a sample is too long for the model.
void check_fits_model(const ShardSet& shards, const RaggedExtents& extents);

/// Reads lengths on this rank alone, without communication. Only the I/O thread uses it.
class LengthReader {
public:
    explicit LengthReader(const ShardSet& shards);
    /// `fields`: ragged ones, as places in the schema; without them all.
    LengthReader(const ShardSet& shards, std::vector<std::size_t> fields);

    /// The lengths of samples [begin, end) of the corpus in these fields [positions]. Throws
    /// BadData (also if a file changed) or IoError.
    RowLengths read(std::int64_t begin, std::int64_t end);
    /// Closes all files.
    void close() { open_.clear(); }

private:
    const OffsetsFile& open(std::size_t shard);
    std::size_t offsets_place(std::size_t field) const;  // among the ragged fields

    const ShardSet& shards_;
    std::vector<std::size_t> fields_;
    std::list<OffsetsFile> open_;  // most recently used first
};

}  // namespace hetseq
