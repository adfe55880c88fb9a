#pragma once

#include <cstdint>

#include "dropout_mask.hpp"

namespace hetseq::detail {

/// A run of one sample's elements that begins `skipped` elements behind the first of a chunk.
struct DropoutPiece {
    std::uint64_t sample = 0;
    std::uint32_t first_chunk = 0;
    std::int64_t elements = 0;
    std::int64_t skipped = 0;  // below the length of a chunk
};

/// `out` = `x` * mask * scale over `piece.elements` elements; `out` may be `x`.
void drop(const DropoutMask& mask, const DropoutPiece& piece, const float* x, float* out);
void drop(const DropoutMask& mask, const DropoutPiece& piece, const double* x, double* out);

}  // namespace hetseq::detail
