#include "shard_size.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>

#include "hetseq/util/error.hpp"
#include "hetseq/util/text.hpp"

namespace hetseq {

namespace {

// docs/data.md names these limits.
constexpr double any_file_may_declare = double{1 << 30};  // [bytes]
constexpr double most_for_a_byte = 200;                   // gzip reaches 3 on text, 1,032 on zeros
constexpr double most_chunk_bytes = double{1 << 30};

std::string bytes_text(double bytes) {
    constexpr double mib = double{1 << 20}, gib = double{1 << 30};
    if (bytes < mib)
        return format_number(bytes) + " bytes";
    return bytes < gib ? format_number(bytes / mib) + " MiB" : format_number(bytes / gib) + " GiB";
}

}  // namespace

double declared_bytes(const std::vector<std::int64_t>& shape, int bytes_of_value) {
    double row_bytes = bytes_of_value;
    for (std::size_t i = 1; i < shape.size(); ++i)
        row_bytes *= static_cast<double>(shape[i]);
    return static_cast<double>(shape.empty() ? 1 : shape[0]) * std::max(row_bytes, 1.0);
}

void check_declared_bytes(const std::string& path, double declared) {
    const auto stored = static_cast<double>(std::filesystem::file_size(path));
    if (declared <= any_file_may_declare || declared <= most_for_a_byte * stored)
        return;
    throw BadData(path + " declares " + bytes_text(declared) + " of data and is " +
                      bytes_text(stored) + " long",
                  "the limit is 1 GiB, or 200 times the file's length: rows that were never "
                  "written, or a bomb of compression, would take hours to read",
                  "prepare the file anew; data that are really so alike can be stored "
                  "uncompressed: h5repack -f NONE IN OUT");
}

void check_chunk_bytes(const std::string& place,
                       const std::vector<std::int64_t>& chunk,
                       int bytes_of_value) {
    double bytes = bytes_of_value;
    for (const std::int64_t length : chunk)
        bytes *= static_cast<double>(length);
    if (bytes <= most_chunk_bytes)
        return;
    throw BadData(place + " has chunks of " + bytes_text(bytes),
                  "the limit is 1 GiB: a rank holds a whole chunk to read a row of it",
                  "rewrite it with smaller ones: h5repack -l CHUNK=1024x... IN OUT");
}

}  // namespace hetseq
