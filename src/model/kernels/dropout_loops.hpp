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

/// Neighbouring blocks of up to eight rows of one sample, with one Philox call a column of a block.
struct DropoutBlocks {
    std::uint64_t sample = 0;
    const PhiloxKey* keys = nullptr;  // of each block
    std::int64_t count = 0;
    std::int64_t first = 0;  // number of the first block in its matrix
    std::int64_t matrix_rows = 0;
    std::int64_t columns = 0;  // above 0
};

/// As `drop`, for all elements of the blocks.
void drop_blocks(const DropoutMask& mask, const DropoutBlocks& blocks, const float* x, float* out);
void drop_blocks(const DropoutMask& mask,
                 const DropoutBlocks& blocks,
                 const double* x,
                 double* out);

}  // namespace hetseq::detail
