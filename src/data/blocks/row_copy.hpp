#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/loaded_share.hpp"

namespace hetseq {

/// The places in memory of a group's blocks, by block.
using BlockPlaces = std::unordered_map<std::int64_t, const std::byte*>;

/// A sample of the corpus and the row that it goes to.
struct PlacedSample {
    std::int64_t sample = 0;
    std::int64_t row = 0;
};

/// Makes uninitialised rows for `samples` samples. `lengths` has the lengths of their rows, by
/// ragged field in the schema's order. A ragged field NAME holds values, row after row. Its offsets
/// NAME_offsets, int64 (samples + 1), are filled.
LoadedShare::Rows make_rows(const ShardSet& shards,
                            std::int64_t samples,
                            const RowLengths& lengths = {});

/// Copies samples out of their blocks, each to its row. Throws BadData if a row is not as long as
/// in `rows`.
void copy_rows(const ShardSet& shards,
               const BlockLayout& layout,
               std::span<const PlacedSample> samples,
               const BlockPlaces& places,
               LoadedShare::Rows& rows);

}  // namespace hetseq
