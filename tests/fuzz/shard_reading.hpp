#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/block_reader.hpp"
#include "hetseq/data/files/ragged_extents.hpp"
#include "hetseq/data/files/shard_header.hpp"
#include "hetseq/data/files/shard_set.hpp"
#include "hetseq/data/hdf5/exact_number.hpp"
#include "hetseq/data/hdf5/float16.hpp"
#include "hetseq/data/hdf5/hdf5.hpp"

#include "fuzz/fuzz.hpp"

namespace hetseq::fuzz {

/// Every kind of field that the tasks have, and every type.
inline CorpusSchema shard_schema() {
    return {
        .kind = "fuzzed",
        .fields = {{.name = "ids",
                    .rank = 2,
                    .type = ElementType::int32,
                    .row_shape = {-1},
                    .max_row_length = 32,
                    .minimum = 0,
                    .maximum = 99},
                   {.name = "mask",
                    .rank = 2,
                    .type = ElementType::int8,
                    .row_shape = {-1},
                    .same_row_shape_as = "ids"},
                   {.name = "positions",
                    .rank = 2,
                    .type = ElementType::int32,
                    .row_shape = {-1},
                    .minimum = 0,
                    .below_row_length_of = "ids"},
                   {.name = "pixels", .rank = 3, .type = ElementType::uint8, .row_shape = {2, 3}},
                   {.name = "labels", .rank = 1, .type = ElementType::int64, .row_shape = {}},
                   {.name = "halves", .rank = 1, .type = ElementType::float16, .row_shape = {}},
                   {.name = "weights",
                    .rank = 2,
                    .type = ElementType::float32,
                    .row_shape = {2},
                    .minimum = 0,
                    .maximum = 1e30},
                   {.name = "doubles", .rank = 1, .type = ElementType::float64, .row_shape = {}},
                   {.name = "flags", .rank = 1, .type = ElementType::boolean, .row_shape = {}},
                   {.name = "tokens",
                    .type = ElementType::int32,
                    .is_ragged = true,
                    .max_row_length = 12,
                    .minimum = 0,
                    .maximum = 99},
                   {.name = "tags",
                    .type = ElementType::int8,
                    .is_ragged = true,
                    .same_row_shape_as = "tokens"},
                   {.name = "spots",
                    .type = ElementType::uint8,
                    .is_ragged = true,
                    .below_row_length_of = "tokens"},
                   {.name = "scores", .type = ElementType::float32, .is_ragged = true},
                   {.name = "choices",
                    .type = ElementType::int64,
                    .minimum = 0,
                    .below_row_length_of = "tokens"}},
        .units_field = "tags"};
}

/// The rows read from a shard, by field: all of them if they are few, otherwise the first.
struct ReadShard {
    ShardHeader header;
    std::vector<std::vector<Number>> values;
};

template <class T>
T bits_at(const std::byte* place) {
    T value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

inline Number value_at(const std::byte* place, ElementType type) {
    switch (type) {
        case ElementType::uint8:
        case ElementType::boolean:
            return std::int64_t{bits_at<std::uint8_t>(place)};
        case ElementType::int8:
            return std::int64_t{bits_at<std::int8_t>(place)};
        case ElementType::int32:
            return std::int64_t{bits_at<std::int32_t>(place)};
        case ElementType::int64:
            return bits_at<std::int64_t>(place);
        case ElementType::float16:
            return float16_value(bits_at<std::uint16_t>(place));
        case ElementType::float32:
            return double{bits_at<float>(place)};
        case ElementType::float64:
            break;
    }
    return bits_at<double>(place);
}

/// Where the rows of a block begin is within its values, and what LengthReader tells.
inline void check_row_offsets(const FieldLayout& field,
                              std::span<const std::byte> slot,
                              std::int64_t block,
                              const std::vector<std::int32_t>& lengths) {
    const std::byte* next = slot.data() + field.row_offsets;
    std::int64_t begin = bits_at<std::int64_t>(next);
    FUZZ_CHECK(begin == 0);
    for (const std::int32_t length : lengths) {
        next += sizeof(std::int64_t);
        FUZZ_CHECK(length >= 0 && bits_at<std::int64_t>(next) == begin + length);
        begin += length;
    }
    FUZZ_CHECK(begin == field.values(block));
}

/// Opens and reads the shard at `path` as training does, a few blocks of it.
inline ReadShard read_shard(const std::string& path) {
    constexpr std::size_t most_slot_bytes = 1 << 20;  // the cache refuses what is too large for it
    constexpr std::int64_t most_blocks = 8;
    constexpr std::int64_t most_samples = 1 << 16;  // an unwritten chunk promises any number
    ReadShard result{read_shard_header(path, shard_schema()), {}};
    FUZZ_CHECK(to_text(shard_headers_from_text(to_text({result.header}))) ==
               to_text({result.header}));
    const ShardSet shards({{path, result.header, stamp_readable_file(path), 0}}, shard_schema());
    default_block_length(shards);
    result.values.resize(shards.schema().fields.size());
    if (shards.samples() > most_samples)
        return result;
    const HostComm alone = HostComm::serial();
    const RaggedExtents extents = read_extents(alone, shards, 7, 10);
    const BlockLayout layout = make_block_layout(shards, 7, &extents);
    if (layout.slot_bytes > most_slot_bytes)
        return result;
    BlockReader reader{shards,
                       layout,
                       std::make_shared<const HostComm>(HostComm::serial()),
                       IoMode::serial,
                       ReadShare::whole};
    std::vector<std::byte> slot(layout.slot_bytes);
    LengthReader length_reader{shards};
    for (std::int64_t block = 0; block < most_blocks && block * 7 < shards.samples(); ++block) {
        reader.read(block, slot);
        const std::int64_t rows = std::min<std::int64_t>(7, shards.samples() - block * 7);
        const RowLengths lengths = length_reader.read(block * 7, block * 7 + rows);
        std::size_t ragged = 0;
        for (std::size_t i = 0; i < layout.fields.size(); ++i) {
            const FieldLayout& field = layout.fields[i];
            if (field.is_ragged)
                check_row_offsets(field, slot, block, lengths[ragged++]);
            const std::int64_t count = field.is_ragged ? field.values(block) : rows;
            for (std::int64_t e = 0; e < count * field.row_elements; ++e)
                result.values[i].push_back(value_at(
                    slot.data() + field.offset + static_cast<std::size_t>(e) * size_of(field.type),
                    field.type));
        }
    }
    return result;
}

}  // namespace hetseq::fuzz
