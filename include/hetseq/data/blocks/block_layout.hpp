#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetseq/data/element_type.hpp"

namespace hetseq {

class ShardSet;

/// How the rows of one field lie in memory.
struct FieldLayout {
    ElementType type = ElementType::uint8;
    std::int64_t row_elements = 1;
    std::size_t row_bytes = 1;
    std::size_t offset = 0;  // of the field's first row in a block's slot
};

/// How a block lies in its cache slot: field after field, each on a 64-byte boundary.
struct BlockLayout {
    std::int64_t block_length = 1;  // samples
    std::vector<FieldLayout> fields;
    std::size_t row_bytes = 0;   // of all fields
    std::size_t slot_bytes = 0;  // of one block
};

BlockLayout make_block_layout(const ShardSet& shards, std::int64_t block_length);

/// The field that takes most of a row.
std::size_t largest_field(const BlockLayout& layout);

/// A block length that a corpus suggests: about 2 MiB of samples, in whole chunks of the field that
/// takes most of it, so that a compressed chunk is not read for two blocks.
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
