#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/loaded_share.hpp"
#include "hetseq/data/order/batch_plan.hpp"
#include "hetseq/data/order/global_order.hpp"

namespace hetseq {

/// The places in memory of a group's blocks, by block.
using BlockPlaces = std::unordered_map<std::int64_t, const std::byte*>;

/// Uninitialised rows for `samples` samples of `shards`.
LoadedShare::Rows make_rows(const ShardSet& shards, std::int64_t samples);

/// Copies the samples at `positions` of `order` out of their blocks into `rows`, the first of them
/// to row `first_row`.
void copy_rows(const ShardSet& shards,
               const BlockLayout& layout,
               const GlobalOrder& order,
               const Slice& positions,
               const BlockPlaces& places,
               LoadedShare::Rows& rows,
               std::int64_t first_row);

}  // namespace hetseq
