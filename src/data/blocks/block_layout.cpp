#include "hetseq/data/blocks/block_layout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "hetseq/util/error.hpp"
#include "hetseq/data/files/shard_set.hpp"

namespace hetseq {

namespace {

constexpr std::size_t alignment = 64;
constexpr std::int64_t target_bytes = std::int64_t{2} << 20;

std::size_t aligned(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

std::int64_t elements(const std::vector<std::int64_t>& row_shape) {
    return std::accumulate(
        row_shape.begin(), row_shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

BlockLayout make_block_layout(const ShardSet& shards, std::int64_t block_length) {
    HETSEQ_ASSERT(block_length >= 1);
    BlockLayout layout;
    layout.block_length = block_length;
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i) {
        FieldLayout field;
        field.type = shards.schema().fields[i].type;
        field.row_elements = elements(shards.row_shape(i));
        field.row_bytes = static_cast<std::size_t>(field.row_elements) * size_of(field.type);
        field.offset = layout.slot_bytes;
        layout.slot_bytes += aligned(field.row_bytes * static_cast<std::size_t>(block_length));
        layout.row_bytes += field.row_bytes;
        layout.fields.push_back(field);
    }
    return layout;
}

std::size_t largest_field(const BlockLayout& layout) {
    const auto largest = std::max_element(
        layout.fields.begin(), layout.fields.end(), [](const auto& a, const auto& b) {
            return a.row_bytes < b.row_bytes;
        });
    return static_cast<std::size_t>(largest - layout.fields.begin());
}

std::int64_t default_block_length(const ShardSet& shards) {
    const BlockLayout layout = make_block_layout(shards, 1);
    const auto row_bytes = static_cast<std::int64_t>(std::max<std::size_t>(layout.row_bytes, 1));
    const std::int64_t target = std::max<std::int64_t>(target_bytes / row_bytes, 1);
    const auto filled = std::find_if(shards.shards().begin(),
                                     shards.shards().end(),
                                     [](const Shard& shard) { return shard.samples() > 0; });
    const std::int64_t chunk = filled->header.datasets[largest_field(layout)].chunk_rows;
    // A chunk far larger than a block would be, often a whole shard, cannot be kept to.
    if (chunk == 0 || chunk > 16 * target)
        return target;
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
