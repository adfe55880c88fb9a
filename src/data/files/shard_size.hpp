#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetseq {

/// The bytes of rows that a dataset declares, at least one for each row.
double declared_bytes(const std::vector<std::int64_t>& shape, int bytes_of_value);

/// Throws BadData if a file declares more bytes than one of its length sensibly holds: rows that
/// were never written, or a bomb of compression, would take hours to read.
void check_declared_bytes(const std::string& path, double declared);

/// Throws BadData if a chunk has more bytes than a rank should hold to read one row of it. `place`
/// names the dataset.
void check_chunk_bytes(const std::string& place,
                       const std::vector<std::int64_t>& chunk,
                       int bytes_of_value);

}  // namespace hetseq
