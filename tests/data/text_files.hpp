#pragma once

#include <fstream>
#include <string>

#include <zlib.h>

namespace hetseq::test {

/// Plain, or compressed by gzip.
inline void write_text(const std::string& path, const std::string& text, bool as_gzip = false) {
    if (!as_gzip) {
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
}

}  // namespace hetseq::test
