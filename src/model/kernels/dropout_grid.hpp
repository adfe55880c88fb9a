#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "dropout_mask.hpp"

namespace hetseq::detail {

/// `DropoutLayout` in 32 bits, whose divisions a GPU does without a call.
struct DropoutGrid {
    std::uint32_t rows = 1;
    std::uint32_t columns = 0;
    std::uint32_t row_chunks = 0;
    std::uint32_t inner_rows = 1;
    std::uint32_t most_inner_rows = 1;
    std::uint32_t most_row_chunks = 0;

    HETSEQ_HOST_DEVICE std::uint32_t calls() const {  // of Philox, for a sample
        return rows * row_chunks * DropoutMask::lanes;
    }
    HETSEQ_HOST_DEVICE std::uint32_t first_chunk(std::uint32_t row) const {
        return (row / inner_rows * most_inner_rows + row % inner_rows) * most_row_chunks;
    }
};

/// Rows of tokens: each has `columns` elements of a sample and begins anywhere in a chunk.
struct TokenGrid {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::uint32_t row_chunks = 0;  // that a row can touch

    HETSEQ_HOST_DEVICE std::uint32_t calls() const {  // of Philox, for all rows
        return rows * row_chunks * DropoutMask::lanes;
    }
};

/// `DropoutMatrices` for a GPU, where a thread makes one Philox call.
struct MatrixGrid {
    DropoutMatrices matrices;

    HETSEQ_HOST_DEVICE std::uint32_t calls() const {  // of Philox, for a sample
        return matrices.matrices * matrices.row_blocks() * matrices.columns;
    }
};

inline constexpr unsigned dropout_block_threads = 256;

/// True where the numbers of a sample's threads fit into 32 bits.
inline bool fits_dropout_grid(const DropoutLayout& layout) {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max() - dropout_block_threads;
    return layout.columns <= most - DropoutMask::chunk &&
           layout.rows * layout.row_chunks() <= most / DropoutMask::lanes;
}

inline DropoutGrid dropout_grid(const DropoutLayout& layout) {
    return {static_cast<std::uint32_t>(layout.rows),
            static_cast<std::uint32_t>(layout.columns),
            static_cast<std::uint32_t>(layout.row_chunks()),
            static_cast<std::uint32_t>(layout.inner_rows),
            static_cast<std::uint32_t>(layout.most_inner_rows),
            static_cast<std::uint32_t>(layout.most_row_chunks)};
}

/// Chunks that a row of tokens can touch: rows of whole chunks begin with one.
inline std::int64_t token_row_chunks(std::int64_t columns) {
    return columns / DropoutMask::chunk + (columns % DropoutMask::chunk == 0 ? 0 : 2);
}

/// True where the numbers of all threads fit into 32 bits.
inline bool fits_token_grid(std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max() - dropout_block_threads;
    return columns <= most - DropoutMask::chunk &&
           (columns == 0 || rows <= most / DropoutMask::lanes / token_row_chunks(columns));
}

inline TokenGrid token_grid(std::int64_t rows, std::int64_t columns) {
    return {static_cast<std::uint32_t>(rows),
            static_cast<std::uint32_t>(columns),
            static_cast<std::uint32_t>(token_row_chunks(columns))};
}

/// True where the numbers of a sample's threads and of a matrix's elements fit into 32 bits.
inline bool fits_matrix_grid(std::int64_t matrices, std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max() - dropout_block_threads;
    const std::int64_t blocks = (rows + DropoutMask::slots - 1) / DropoutMask::slots;
    return matrices == 0 || blocks == 0 || columns == 0 ||
           (blocks <= most / DropoutMask::slots / columns && matrices <= most / (blocks * columns));
}

/// Blocks along x, for a sample's calls, and along y, for samples: a GPU has 65,535 there at most,
/// so that a block may serve several.
template <class Grid>
unsigned dropout_blocks(const Grid& grid) {
    return (grid.calls() + dropout_block_threads - 1) / dropout_block_threads;
}
inline unsigned dropout_sample_blocks(std::int64_t samples) {
    return static_cast<unsigned>(std::min<std::int64_t>(samples, 65535));
}

}  // namespace hetseq::detail
