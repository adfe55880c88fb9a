#include "row_copy.hpp"

#include <cstring>
#include <vector>

#include <ATen/ops/empty.h>

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

}  // namespace

LoadedShare::Rows make_rows(const ShardSet& shards, std::int64_t samples) {
    LoadedShare::Rows rows;
    for (std::size_t i = 0; i < shards.schema().fields.size(); ++i) {
        std::vector<std::int64_t> shape{samples};
        shape.insert(shape.end(), shards.row_shape(i).begin(), shards.row_shape(i).end());
        const FieldSchema& field = shards.schema().fields[i];
        rows.fields[field.name] =
            at::empty(shape, at::TensorOptions().dtype(scalar_type(field.type)));
    }
    rows.sample_ids = at::empty({samples}, at::TensorOptions().dtype(at::kLong));
    return rows;
}

void copy_rows(const ShardSet& shards,
               const BlockLayout& layout,
               const GlobalOrder& order,
               const Slice& positions,
               const BlockPlaces& places,
               LoadedShare::Rows& rows,
               std::int64_t first_row) {
    std::vector<std::byte*> targets;
    for (std::size_t i = 0; i < layout.fields.size(); ++i) {
        const at::Tensor& field = rows.fields.at(shards.schema().fields[i].name);
        targets.push_back(static_cast<std::byte*>(field.data_ptr()) +
                          static_cast<std::size_t>(first_row) * layout.fields[i].row_bytes);
    }
    auto* ids = rows.sample_ids.data_ptr<std::int64_t>() + first_row;
    for (std::int64_t position = positions.begin; position < positions.end; ++position) {
        const std::int64_t sample = order(position);
        const std::byte* block = places.at(sample / layout.block_length);
        const auto row = static_cast<std::size_t>(sample % layout.block_length);
        for (std::size_t i = 0; i < layout.fields.size(); ++i) {
            const FieldLayout& field = layout.fields[i];
            std::memcpy(targets[i], block + field.offset + row * field.row_bytes, field.row_bytes);
            targets[i] += field.row_bytes;
        }
        *ids++ = sample;
    }
}

}  // namespace hetseq
