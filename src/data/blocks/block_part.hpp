#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/files/row_offsets.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

/// What a block takes from one shard.
struct BlockPart {
    ShardRows rows;
    std::int64_t first_row = 0;               // of the block
    std::vector<RowRange> values{};           // of the shard, by ragged field
    std::vector<std::int64_t> first_value{};  // of the block, by ragged field
    RowOffsets offsets{};  // as the shard has them; none until read, and where they are bad

    bool has_offsets() const noexcept { return !offsets.empty(); }
    /// The row of the shard that value `value` of a ragged field lies in. `ragged`: the field's
    /// place among the ragged ones.
    std::int64_t row_of(std::size_t ragged, std::int64_t value) const;
    /// Values of `row` of the shard.
    std::int64_t length_of(std::size_t ragged, std::int64_t row) const;
};

/// The parts of `block`, in order. Which values they take follows from the layout's borders, so
/// that all ranks agree on it without reading.
std::vector<BlockPart> parts_of_block(const ShardSet& shards,
                                      const BlockLayout& layout,
                                      std::int64_t block);

/// Throws BadData unless `offsets`, of the rows of `part`, are good and still those of its values.
void check_offsets(const ShardSet& shards, const BlockPart& part, const RowOffsets& offsets);

/// Writes where `rows` of the shard, some of those of `part`, begin and end in the block.
void write_row_offsets(const BlockPart& part,
                       RowRange rows,
                       std::size_t ragged,
                       std::span<std::int64_t> target);

}  // namespace hetseq
