#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hetseq/data/schema.hpp"

namespace hetseq {

enum class StoredKind { integer, real, boolean };

/// A type as a file stores it.
struct StoredType {
    int bytes = 0;
    bool is_signed = true;  // of integers, and of those that stand for a boolean
    StoredKind kind = StoredKind::integer;
    std::string name() const;  // "int32", "uint8", "float16", "bool"
};

/// One dataset of one shard.
struct DatasetHeader {
    StoredType type;
    std::vector<std::int64_t> row_shape;
    std::int64_t chunk_rows = 0;  // rows of a chunk; 0: stored contiguously
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

/// Headers as text, to send to other ranks.
std::string to_text(const std::vector<ShardHeader>& headers);
std::vector<ShardHeader> shard_headers_from_text(const std::string& text);

/// "128 x 20", or "a number" for rows without dimensions.
std::string row_shape_text(const std::vector<std::int64_t>& row_shape);

}  // namespace hetseq
