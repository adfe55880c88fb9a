#include "hetseq/data/blocks/block_layout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

namespace {

constexpr std::size_t alignment = 64;
constexpr std::int64_t target_bytes = std::int64_t{2} << 20;
constexpr std::int64_t least_ragged_chunks = 16;  // in a block; one more is read

std::size_t aligned(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

std::int64_t elements(const std::vector<std::int64_t>& row_shape) {
    return std::accumulate(
        row_shape.begin(), row_shape.end(), std::int64_t{1}, std::multiplies<>());
}

FieldLayout row_layout(const ShardSet& shards, std::size_t field) {
    FieldLayout layout;
    layout.type = shards.schema().fields[field].type;
    layout.is_ragged = shards.schema().fields[field].is_ragged;
    layout.row_elements = elements(shards.row_shape(field));
    layout.row_bytes = static_cast<std::size_t>(layout.row_elements) * size_of(layout.type);
    return layout;
}

// The number of values in the block that has the most.
std::int64_t most_values(const std::vector<std::int64_t>& borders) {
    std::int64_t most = 0;
    for (std::size_t i = 0; i + 1 < borders.size(); ++i)
        most = std::max(most, borders[i + 1] - borders[i]);
    return most;
}

}  // namespace

BlockLayout make_block_layout(const ShardSet& shards,
                              std::int64_t block_length,
                              const RaggedExtents* extents) {
    HETSEQ_ASSERT(block_length >= 1);
    HETSEQ_ASSERT(extents != nullptr || shards.ragged_fields().empty());
    BlockLayout layout;
    layout.block_length = block_length;
    std::size_t ragged = 0;
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i) {
        FieldLayout field = row_layout(shards, i);
        std::int64_t rows = block_length;
        if (field.is_ragged) {
            field.borders = extents->borders[ragged++];
            field.row_offsets = layout.slot_bytes;
            layout.slot_bytes +=
                aligned((static_cast<std::size_t>(block_length) + 1) * sizeof(std::int64_t));
            rows = most_values(field.borders);
        }
        field.offset = layout.slot_bytes;
        layout.slot_bytes += aligned(field.row_bytes * static_cast<std::size_t>(rows));
        layout.fields.push_back(std::move(field));
    }
    return layout;
}

std::int64_t mean_row_bytes(const ShardSet& shards, std::size_t field) {
    const FieldLayout layout = row_layout(shards, field);
    const auto bytes = static_cast<std::int64_t>(layout.row_bytes);
    if (!layout.is_ragged)
        return bytes;
    return shards.values(field) * bytes / shards.samples() +
           static_cast<std::int64_t>(sizeof(std::int64_t));
}

std::size_t largest_field(const ShardSet& shards) {
    std::size_t largest = 0;
    for (std::size_t i = 1; i < shards.schema().fields.size(); ++i) {
        if (mean_row_bytes(shards, i) > mean_row_bytes(shards, largest))
            largest = i;
    }
    return largest;
}

std::int64_t rows_of_chunk(const ShardSet& shards, std::size_t shard) {
    const std::size_t field = largest_field(shards);
    const std::int64_t chunk = shards.shards()[shard].header.datasets[field].chunk_rows;
    if (!shards.schema().fields[field].is_ragged)
        return chunk;
    const std::int64_t mean =
        std::max<std::int64_t>(shards.values(field) / shards.samples(), 1);  // values of a row
    return chunk == 0 ? 0 : std::max<std::int64_t>(chunk / mean, 1);
}

std::int64_t default_block_length(const ShardSet& shards) {
    std::int64_t row_bytes = 0;
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i)
        row_bytes += mean_row_bytes(shards, i);
    const std::int64_t target =
        std::max<std::int64_t>(target_bytes / std::max<std::int64_t>(row_bytes, 1), 1);
    const auto filled = std::find_if(shards.shards().begin(),
                                     shards.shards().end(),
                                     [](const Shard& shard) { return shard.samples() > 0; });
    const std::int64_t chunk =
        rows_of_chunk(shards, static_cast<std::size_t>(filled - shards.shards().begin()));
    const bool is_ragged = shards.schema().fields[largest_field(shards)].is_ragged;
    const std::int64_t least = is_ragged ? least_ragged_chunks * chunk : chunk;
    // A chunk may be far larger than a block should be, often a whole shard. Then blocks cannot
    // have whole chunks.
    if (chunk == 0 || least > 16 * target)
        return target;
    if (is_ragged)
        return std::max(target, least);
    return std::max<std::int64_t>((target + chunk / 2) / chunk, 1) * chunk;
}

RowRange chunk_aligned_part(RowRange rows, std::int64_t chunk_rows, int part, int parts) {
    const std::int64_t unit = std::max<std::int64_t>(chunk_rows, 1);
    const auto border = [&](std::int64_t i) {
        if (i == 0)
            return rows.begin;
        if (i == parts)
            return rows.end;
        const std::int64_t even = rows.begin + rows.size() * i / parts;
        return std::clamp((even + unit / 2) / unit * unit, rows.begin, rows.end);
    };
    return {border(part), border(part + 1)};
}

}  // namespace hetseq
