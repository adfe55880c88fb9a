#pragma once

#include <cstdint>
#include <string>

#include "hetseq/util/text.hpp"

namespace hetseq {

/// What the tables of prepared data show.
inline std::string whole(std::int64_t number) {
    return std::to_string(number);
}

inline std::string megabytes(std::int64_t bytes) {
    return format_number(static_cast<double>(bytes) / 1e6, 4);
}

}  // namespace hetseq
