#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/data/blocks/block_layout.hpp"
#include "hetseq/data/blocks/block_reader.hpp"
#include "hetseq/data/files/half.hpp"
#include "hetseq/data/files/hdf5.hpp"
#include "hetseq/data/files/number.hpp"
#include "hetseq/data/files/shard_header.hpp"
#include "hetseq/data/files/shard_set.hpp"

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
                   {.name = "flags", .rank = 1, .type = ElementType::boolean, .row_shape = {}}}};
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
            return half_value(bits_at<std::uint16_t>(place));
        case ElementType::float32:
            return double{bits_at<float>(place)};
        case ElementType::float64:
            break;
    }
    return bits_at<double>(place);
}

/// Opens and reads the shard at `path` as training does, a few blocks of it.
inline ReadShard read_shard(const std::string& path) {
    constexpr std::size_t most_slot_bytes = 1 << 20;  // the cache refuses what is too large for it
    constexpr std::int64_t most_blocks = 8;
    ReadShard result{read_shard_header(path, shard_schema()), {}};
    FUZZ_CHECK(to_text(shard_headers_from_text(to_text({result.header}))) ==
               to_text({result.header}));
    const ShardSet shards({{path, result.header, stamp_readable_file(path), 0}}, shard_schema());
    default_block_length(shards);
    const BlockLayout layout = make_block_layout(shards, 7);
    result.values.resize(layout.fields.size());
    if (layout.slot_bytes > most_slot_bytes)
        return result;
    BlockReader reader{shards,
                       layout,
                       std::make_shared<const HostComm>(HostComm::serial()),
                       IoMode::serial,
                       ReadShare::whole};
    std::vector<std::byte> slot(layout.slot_bytes);
    for (std::int64_t block = 0; block < most_blocks && block * 7 < shards.samples(); ++block) {
        reader.read(block, slot);
        const std::int64_t rows = std::min<std::int64_t>(7, shards.samples() - block * 7);
        for (std::size_t i = 0; i < layout.fields.size(); ++i)
            for (std::int64_t e = 0; e < rows * layout.fields[i].row_elements; ++e)
                result.values[i].push_back(
                    value_at(slot.data() + layout.fields[i].offset +
                                 static_cast<std::size_t>(e) * size_of(layout.fields[i].type),
                             layout.fields[i].type));
    }
    return result;
}

}  // namespace hetseq::fuzz
