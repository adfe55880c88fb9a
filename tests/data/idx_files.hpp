#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <zlib.h>

namespace hetseq::test {

/// The bytes of an IDX file.
inline std::vector<std::uint8_t> idx_bytes(const std::vector<std::uint32_t>& shape,
                                           const std::vector<std::uint8_t>& values) {
    std::vector<std::uint8_t> bytes{0, 0, 0x08, static_cast<std::uint8_t>(shape.size())};
    for (const std::uint32_t length : shape)
        for (const int shift : {24, 16, 8, 0})
            bytes.push_back(static_cast<std::uint8_t>(length >> shift));
    bytes.insert(bytes.end(), values.begin(), values.end());
    return bytes;
}

inline void write_plain(const std::string& path, const std::vector<std::uint8_t>& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

inline void write_gzip(const std::string& path, const std::vector<std::uint8_t>& bytes) {
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
}

}  // namespace hetseq::test
