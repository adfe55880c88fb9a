#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/files/row_offsets.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

/// The part of a block that lies in one shard.
struct BlockPart {
    ShardRows rows;
    std::int64_t first_row = 0;               // of the block
    std::vector<RowRange> values{};           // of the shard, by ragged field
    std::vector<std::int64_t> first_value{};  // of the block, by ragged field
    RowOffsets offsets{};  // as the shard has them; empty before they are read, and if they are bad

    bool has_offsets() const noexcept { return !offsets.empty(); }
    /// The row of the shard that value `value` of a ragged field lies in. `ragged`: the field's
    /// place among the ragged ones.
    std::int64_t row_of(std::size_t ragged, std::int64_t value) const;
    /// The number of values in `row` of the shard.
    std::int64_t length_of(std::size_t ragged, std::int64_t row) const;
};

/// The parts of `block`, in order. The layout's borders say which values they have, so all ranks
/// agree on it without reading.
std::vector<BlockPart> parts_of_block(const ShardSet& shards,
                                      const BlockLayout& layout,
                                      std::int64_t block);

/// Throws BadData unless `offsets`, which belong to the rows of `part`, are good and still lead to
/// the values of `part`.
void check_offsets(const ShardSet& shards, const BlockPart& part, const RowOffsets& offsets);

/// Writes where `rows` begin and end in the block. They are rows of the shard, some of those of
/// `part`.
void write_row_offsets(const BlockPart& part,
                       RowRange rows,
                       std::size_t ragged,
                       std::span<std::int64_t> target);

}  // namespace hetseq
