#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetseq/data/element_type.hpp"

namespace hetseq {

struct RaggedExtents;
class ShardSet;

/// How the rows of one field lie in memory. The rows of a ragged field lie end to end. The table
/// before them says where in the block each row begins.
struct FieldLayout {
    ElementType type = ElementType::uint8;
    std::int64_t row_elements = 1;  // 1 for a ragged field, since its values lie end to end
    std::size_t row_bytes = 1;
    std::size_t offset = 0;  // of the field's first row in a block's slot
    bool is_ragged = false;
    // Only ragged fields have these.
    std::size_t row_offsets = 0;  // in a slot: block_length + 1 int64, the first of them 0 [values]
    std::vector<std::int64_t> borders{};  // values of the corpus before each block; blocks + 1

    /// Values of `block` of a ragged field.
    std::int64_t values(std::int64_t block) const {
        const auto i = static_cast<std::size_t>(block);
        return borders[i + 1] - borders[i];
    }
};

/// How a block lies in its cache slot: field after field. Each field begins on a 64-byte boundary.
struct BlockLayout {
    std::int64_t block_length = 1;  // samples
    std::vector<FieldLayout> fields;
    std::size_t slot_bytes = 0;  // of the largest block
};

/// Lays out the blocks of `shards`. `extents` belong to blocks of this length; they are needed
/// where a field is ragged.
BlockLayout make_block_layout(const ShardSet& shards,
                              std::int64_t block_length,
                              const RaggedExtents* extents = nullptr);

/// The bytes in memory of a row of `field`. For a ragged field this is the mean, and includes the
/// row's offset.
std::int64_t mean_row_bytes(const ShardSet& shards, std::size_t field);

/// The field that takes the most bytes of a row.
std::size_t largest_field(const ShardSet& shards);

/// The number of rows in a chunk of the largest field, by the header of shard `shard`. If that
/// field is ragged, the number is approximate. 0: stored contiguously.
std::int64_t rows_of_chunk(const ShardSet& shards, std::size_t shard);

/// The block length for a corpus whose user gives none: about 2 MiB of samples, in whole chunks of
/// the largest field, so that no compressed chunk is read for two blocks. The chunks of a ragged
/// field end inside rows. There a block has at least 16 chunks, so that few of them are read twice.
std::int64_t default_block_length(const ShardSet& shards);

/// Part `part` of `parts` of rows [begin, end), cut where chunks of `chunk_rows` rows begin (0: no
/// chunks), so that no two parts need the same chunk. Parts may be empty.
struct RowRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t size() const noexcept { return end - begin; }
    friend bool operator==(const RowRange&, const RowRange&) = default;
};
RowRange chunk_aligned_part(RowRange rows, std::int64_t chunk_rows, int part, int parts);

}  // namespace hetseq
