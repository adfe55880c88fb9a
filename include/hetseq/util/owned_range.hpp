#pragma once

#include <cstdint>

namespace hetseq {

/// Elements of a tensor that belong to one rank.
struct OwnedRange {
    int owner = 0;
    std::int64_t begin = 0;
    std::int64_t length = 0;

    bool operator==(const OwnedRange&) const = default;
};

}  // namespace hetseq
