#pragma once

#include <cstdint>

#include "hetseq/model/philox.hpp"

namespace hetseq {
struct DropoutExtent;
struct DropoutKey;
}  // namespace hetseq

namespace hetseq::detail {

/// Which random bits decide about which element, for CPU and CUDA alike.
///
/// A sample's elements are taken in chunks of 128. A chunk uses 16 Philox calls ("lanes"); each
/// gives eight 16-bit numbers ("slots"). Element e of a chunk belongs to lane e % 16 and slot
/// e / 16, so that both a vector unit and a warp touch neighbouring elements. An element is kept
/// where its number is below `threshold`.
struct DropoutMask {
    static constexpr int lanes = 16;
    static constexpr int slots = 8;
    static constexpr int chunk = lanes * slots;

    PhiloxKey key{};
    std::uint32_t update = 0;
    std::uint32_t layer = 0;
    std::uint32_t threshold = 1u << 16;  // keep probability * 2^16, in [1, 2^16]

    /// The counter of one Philox call. Distinct for all (update, layer, sample, call).
    HETSEQ_HOST_DEVICE PhiloxCounter counter(std::uint64_t sample, std::uint32_t call) const {
        return {{call,
                 static_cast<std::uint32_t>(sample),
                 (static_cast<std::uint32_t>(sample >> 32) << 16) | layer,
                 update}};
    }

    HETSEQ_HOST_DEVICE static std::uint32_t slot_of(const PhiloxCounter& bits, int slot) {
        return (bits.word[slot / 2] >> (16 * (slot % 2))) & 0xFFFFu;
    }

    double scale() const { return 65536.0 / threshold; }
};

/// Where the elements of one sample lie: rows of `columns` elements each, `inner_rows` to a group
/// of rows. A row begins with a new chunk. The numbers of its chunks do not depend on how many rows
/// and columns the tensor has, only on how many it could have.
struct DropoutLayout {
    std::int64_t rows = 1;
    std::int64_t columns = 0;
    std::int64_t inner_rows = 1;
    std::int64_t most_inner_rows = 1;
    std::int64_t most_row_chunks = 0;

    HETSEQ_HOST_DEVICE std::int64_t elements() const { return rows * columns; }
    HETSEQ_HOST_DEVICE std::int64_t row_chunks() const {
        return (columns + DropoutMask::chunk - 1) / DropoutMask::chunk;
    }
    HETSEQ_HOST_DEVICE std::uint32_t first_chunk(std::int64_t row) const {
        return static_cast<std::uint32_t>((row / inner_rows * most_inner_rows + row % inner_rows) *
                                          most_row_chunks);
    }
};

/// A key of its own for each pair of coordinates.
HETSEQ_HOST_DEVICE inline PhiloxKey derived_key(PhiloxKey key, std::uint32_t a, std::uint32_t b) {
    const PhiloxCounter drawn = philox4x32({{a, b, 0, 0}}, key);
    return {{drawn.word[0], drawn.word[1]}};
}

/// Where the elements of one sample (..., rows, columns) lie by their coordinates. No random bit
/// depends on a size: an element has the same ones however far any dimension is padded.
///
/// One Philox call serves a column of eight rows. The coordinates before the column make its key.
struct DropoutMatrices {
    static constexpr int most_outer = 8;
    static constexpr std::uint32_t block_rows = DropoutMask::slots;

    std::uint32_t outer[most_outer] = {1, 1, 1, 1, 1, 1, 1, 1};  // sizes, innermost first
    int outer_dims = 0;
    std::uint32_t matrices = 1;  // product of `outer`
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;

    HETSEQ_HOST_DEVICE std::uint32_t row_blocks() const {
        return (rows + block_rows - 1) / block_rows;
    }

    /// Rows of a sample before its block `i`, counted over all matrices.
    std::int64_t rows_before(std::int64_t i) const {
        return i / row_blocks() * rows + i % row_blocks() * block_rows;
    }

    /// Of the rows [8 * block, 8 * block + 8) of a matrix; the counter's call is the column.
    HETSEQ_HOST_DEVICE PhiloxKey key_of(PhiloxKey key,
                                        std::uint32_t matrix,
                                        std::uint32_t block) const {
        key = derived_key(key, block, matrix % outer[0]);
        std::uint32_t rest = matrix / outer[0];
        for (int d = 1; d < outer_dims; ++d) {
            key = derived_key(key, rest % outer[d], 0);
            rest /= outer[d];
        }
        return key;
    }
};

/// Of samples (matrices, rows, columns) that are padded, up to `extent`.
DropoutLayout padded_layout(std::int64_t matrices,
                            std::int64_t rows,
                            std::int64_t columns,
                            const DropoutExtent& extent);

/// `p` as in `counter_dropout`.
DropoutMask make_dropout_mask(double p, const DropoutKey& key);

}  // namespace hetseq::detail
