#include "block_part.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

std::int64_t BlockPart::row_of(std::size_t ragged, std::int64_t value) const {
    const std::vector<std::int64_t>& begins = offsets[ragged];
    const auto behind = std::upper_bound(begins.begin(), begins.end(), value);
    return rows.begin + (behind - begins.begin()) - 1;
}

std::int64_t BlockPart::length_of(std::size_t ragged, std::int64_t row) const {
    const auto i = static_cast<std::size_t>(row - rows.begin);
    return offsets[ragged][i + 1] - offsets[ragged][i];
}

std::vector<BlockPart> parts_of_block(const ShardSet& shards,
                                      const BlockLayout& layout,
                                      std::int64_t block) {
    const std::int64_t begin = block * layout.block_length;
    const std::int64_t end = std::min(begin + layout.block_length, shards.samples());
    std::vector<BlockPart> parts;
    std::int64_t first_row = 0;
    for (const ShardRows& rows : shards.rows(begin, end)) {
        BlockPart part{rows, first_row};
        const Shard& shard = shards.shards()[rows.shard];
        for (std::size_t k = 0; k < shards.ragged_fields().size(); ++k) {
            const std::size_t field = shards.ragged_fields()[k];
            const auto& borders = layout.fields[field].borders;
            const auto place = static_cast<std::size_t>(block);
            const std::int64_t first = shard.value_offsets[k];
            const std::int64_t all = shard.header.datasets[field].values;
            part.values.push_back({std::clamp<std::int64_t>(borders[place] - first, 0, all),
                                   std::clamp<std::int64_t>(borders[place + 1] - first, 0, all)});
            part.first_value.push_back(first + part.values.back().begin - borders[place]);
        }
        first_row += rows.size();
        parts.push_back(std::move(part));
    }
    return parts;
}

void check_offsets(const ShardSet& shards, const BlockPart& part, const RowOffsets& offsets) {
    if (const auto bad = first_bad_row(shards, part.rows, offsets))
        throw bad->error;
    for (std::size_t k = 0; k < offsets.size(); ++k) {
        if (RowRange{offsets[k].front(), offsets[k].back()} != part.values[k])
            throw BadData(shards.shards()[part.rows.shard].path + " changed during the run",
                          "rows " + std::to_string(part.rows.begin) + " to " +
                              std::to_string(part.rows.end) + " lie elsewhere than before",
                          "start again once the file is complete");
    }
}

void write_row_offsets(const BlockPart& part,
                       RowRange rows,
                       std::size_t ragged,
                       std::span<std::int64_t> target) {
    const std::vector<std::int64_t>& begins = part.offsets[ragged];
    const std::int64_t shift = part.first_value[ragged] - part.values[ragged].begin;
    // Only the end of each row is written, so that no two ranks write the same place.
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const std::int64_t i = row - part.rows.begin;
        target[static_cast<std::size_t>(part.first_row + i + 1)] =
            begins[static_cast<std::size_t>(i + 1)] + shift;
    }
    if (part.first_row == 0 && rows.begin == part.rows.begin && rows.size() > 0)
        target[0] = 0;
}

}  // namespace hetseq
