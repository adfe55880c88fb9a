#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/hdf5/stored_type.hpp"
#include "hetseq/data/schema.hpp"

namespace hetseq {

/// The dataset of one shard that says where the rows of a ragged field begin.
struct OffsetsHeader {
    StoredType type{};
    std::int64_t chunk_rows = 0;  // offsets of a chunk; 0: stored contiguously
};

/// One field of one shard.
struct DatasetHeader {
    StoredType type;
    std::vector<std::int64_t> row_shape;  // empty where the field is ragged
    std::int64_t chunk_rows = 0;          // rows of a chunk; 0: stored contiguously
    // Only a ragged field has these. Its `chunk_rows` counts values.
    std::int64_t values = 0;  // of all rows
    OffsetsHeader offsets{};
};

/// The header of one shard.
struct ShardHeader {
    std::int64_t samples = 0;
    std::vector<DatasetHeader> datasets;  // in the order of the schema's fields
};

/// Opens the file (serially; this process alone) and checks everything a header shows against
/// `schema`: HDF5 at all, complete, the datasets, their types, dimensions, row shapes and lengths.
/// Throws BadData or IoError that names file, dataset, what was found and what was expected.
ShardHeader read_shard_header(const std::string& path, const CorpusSchema& schema);

/// The most values that a row may have: 1 GiB of int64, which MPI counts in int.
constexpr std::int64_t most_row_values = std::int64_t{1} << 27;

/// Headers as text, to send to other ranks.
std::string to_text(const std::vector<ShardHeader>& headers);
std::vector<ShardHeader> shard_headers_from_text(const std::string& text);

/// "128 x 20", "any" where a length is negative, or "a number" for rows without dimensions.
std::string row_shape_text(const std::vector<std::int64_t>& row_shape);

}  // namespace hetseq
