#include "row_copy.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

at::ScalarType scalar_type(ElementType type) {
    switch (type) {
        case ElementType::uint8:
            return at::kByte;
        case ElementType::int8:
            return at::kChar;
        case ElementType::int32:
            return at::kInt;
        case ElementType::float16:
            return at::kHalf;
        case ElementType::float32:
            return at::kFloat;
        case ElementType::float64:
            return at::kDouble;
        case ElementType::boolean:
            return at::kBool;
        case ElementType::int64:
            break;
    }
    return at::kLong;
}

at::Tensor tensor_of(const std::vector<std::int64_t>& shape, ElementType type) {
    return at::empty(shape, at::TensorOptions().dtype(scalar_type(type)));
}

at::Tensor offsets_of(const std::vector<std::int32_t>& lengths) {
    at::Tensor offsets = tensor_of({std::ssize(lengths) + 1}, ElementType::int64);
    auto* next = offsets.data_ptr<std::int64_t>();
    *next = 0;
    for (const std::int32_t length : lengths) {
        next[1] = next[0] + length;
        ++next;
    }
    return offsets;
}

// Where the rows of a field go. For a ragged field, also where each row begins.
struct FieldTarget {
    const FieldLayout& layout;
    std::byte* values;
    const std::int64_t* offsets;  // null: a fixed row is `row_bytes` long
};

std::vector<FieldTarget> targets_of(const ShardSet& shards,
                                    const BlockLayout& layout,
                                    LoadedShare::Rows& rows) {
    std::vector<FieldTarget> targets;
    for (std::size_t i = 0; i < layout.fields.size(); ++i) {
        const std::string& name = shards.schema().fields[i].name;
        auto* values = static_cast<std::byte*>(rows.fields.at(name).data_ptr());
        const std::int64_t* offsets =
            layout.fields[i].is_ragged
                ? rows.fields.at(offsets_name(name)).const_data_ptr<std::int64_t>()
                : nullptr;
        targets.push_back({layout.fields[i], values, offsets});
    }
    return targets;
}

// Copies `row` of `block` to row `to` of `target`. False if the two differ in length.
bool copy_ragged_row(const FieldTarget& target,
                     const std::byte* block,
                     std::size_t row,
                     std::size_t to) {
    const FieldLayout& field = target.layout;
    const auto* begins = reinterpret_cast<const std::int64_t*>(block + field.row_offsets);
    const std::int64_t length = begins[row + 1] - begins[row];
    if (length != target.offsets[to + 1] - target.offsets[to])
        return false;
    if (length > 0)
        std::memcpy(target.values + static_cast<std::size_t>(target.offsets[to]) * field.row_bytes,
                    block + field.offset + static_cast<std::size_t>(begins[row]) * field.row_bytes,
                    static_cast<std::size_t>(length) * field.row_bytes);
    return true;
}

[[noreturn]] void throw_changed(const ShardSet& shards, std::int64_t sample) {
    const ShardRows place = shards.rows(sample, sample + 1).front();
    throw BadData(shards.shards()[place.shard].path + " changed during the run",
                  "row " + std::to_string(place.begin) + " has another length than before",
                  "start again once the file is complete");
}

}  // namespace

LoadedShare::Rows make_rows(const ShardSet& shards,
                            std::int64_t samples,
                            const RowLengths& lengths) {
    HETSEQ_ASSERT(lengths.size() == shards.ragged_fields().size());
    LoadedShare::Rows rows;
    std::size_t ragged = 0;
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i) {
        const FieldSchema& field = shards.schema().fields[i];
        std::vector<std::int64_t> shape{samples};
        shape.insert(shape.end(), shards.row_shape(i).begin(), shards.row_shape(i).end());
        if (field.is_ragged) {
            HETSEQ_ASSERT(std::ssize(lengths[ragged]) == samples);
            const at::Tensor offsets = offsets_of(lengths[ragged++]);
            shape = {offsets.const_data_ptr<std::int64_t>()[samples]};
            rows.fields[offsets_name(field.name)] = offsets;
            rows.ragged.push_back(field.name);
        }
        rows.fields[field.name] = tensor_of(shape, field.type);
    }
    rows.sample_ids = tensor_of({samples}, ElementType::int64);
    return rows;
}

void copy_rows(const ShardSet& shards,
               const BlockLayout& layout,
               std::span<const PlacedSample> samples,
               const BlockPlaces& places,
               LoadedShare::Rows& rows) {
    const std::vector<FieldTarget> targets = targets_of(shards, layout, rows);
    auto* ids = rows.sample_ids.data_ptr<std::int64_t>();
    for (const PlacedSample& placed : samples) {
        const std::byte* block = places.at(placed.sample / layout.block_length);
        const auto row = static_cast<std::size_t>(placed.sample % layout.block_length);
        const auto to = static_cast<std::size_t>(placed.row);
        for (const FieldTarget& target : targets) {
            const FieldLayout& field = target.layout;
            if (!field.is_ragged)
                std::memcpy(target.values + to * field.row_bytes,
                            block + field.offset + row * field.row_bytes,
                            field.row_bytes);
            else if (!copy_ragged_row(target, block, row, to))
                throw_changed(shards, placed.sample);
        }
        ids[to] = placed.sample;
    }
}

}  // namespace hetseq
