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

/// At most eight rows of one sample, one behind the other, with one Philox call a column.
struct DropoutRows {
    std::uint64_t sample = 0;
    int rows = 0;
    std::int64_t columns = 0;
};

/// As `drop`, for `rows.rows` * `rows.columns` elements.
void drop_rows(const DropoutMask& mask, const DropoutRows& rows, const float* x, float* out);
void drop_rows(const DropoutMask& mask, const DropoutRows& rows, const double* x, double* out);

}  // namespace hetseq::detail
