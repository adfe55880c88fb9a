#pragma once

#include <cstddef>
#include <string>

namespace hetseq::test {

/// How often `part` stands in `text`.
inline int occurrences(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

}  // namespace hetseq::test
