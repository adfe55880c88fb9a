#include "dropout_loops.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "dropout_lanes.hpp"

namespace hetseq::detail {

namespace {

template <class T>
HETSEQ_ALWAYS_INLINE void drop_piece(const DropoutMask& mask,
                                     const DropoutPiece& piece,
                                     const T* x,
                                     T* out) {
    const T scale = static_cast<T>(mask.scale());
    DropoutBits bits{};
    std::uint32_t chunk = piece.first_chunk;
    for (std::int64_t begin = -piece.skipped; begin < piece.elements;
         begin += DropoutMask::chunk, ++chunk) {
        draw_chunk(mask, piece.sample, chunk, bits);
        const int count =
            static_cast<int>(std::min<std::int64_t>(DropoutMask::chunk, piece.elements - begin));
        if (begin >= 0)
            for_each_in_chunk(mask, bits, count, [&](int i, bool keep) {
                out[begin + i] = keep ? x[begin + i] * scale : T(0);
            });
        else
            for_each_in_chunk(mask, bits, count, [&](int i, bool keep) {
                if (begin + i >= 0)
                    out[begin + i] = keep ? x[begin + i] * scale : T(0);
            });
    }
}

/// `value` where `keep` is -1, 0 where it is 0. By arithmetic: g++ 12 makes wrong AVX-512 code of
/// the conditional in loops over doubles.
template <class T>
HETSEQ_ALWAYS_INLINE T kept_or_zero(T value, std::int32_t keep) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    return std::bit_cast<T>(std::bit_cast<Bits>(value) & Bits{keep});
}

/// -1 for an element that is kept, else 0.
HETSEQ_ALWAYS_INLINE std::int32_t decide(std::uint32_t word, int shift, std::uint32_t threshold) {
    return -static_cast<std::int32_t>(((word >> shift) & 0xFFFFu) < threshold);
}

// Rows of a BERT's width are written in one go; narrow ones are read while they are decided about.
constexpr int most_calls = 1024;
constexpr int narrow_calls = 128;
constexpr int spare_lanes = DropoutMask::lanes;  // whole vectors may reach over the end

/// Philox calls of neighbouring columns and blocks, each with the key of its block.
struct Calls {
    alignas(64) std::uint32_t key[2][most_calls + spare_lanes];
    alignas(64) std::uint32_t column[most_calls + spare_lanes];
    alignas(64) std::uint32_t word[4][most_calls + spare_lanes];
    alignas(64) std::int32_t keep[DropoutMask::slots * narrow_calls + spare_lanes];
};

/// Columns [first, first + columns) of each block. Vectors of `lanes` columns: what they write
/// behind a block's, the next block writes again.
template <int lanes>
HETSEQ_ALWAYS_INLINE void draw_calls(const DropoutMask& mask,
                                     std::uint64_t sample,
                                     const PhiloxKey* keys,
                                     std::int64_t blocks,
                                     std::uint32_t first,
                                     int columns,
                                     Calls& calls) {
    int count = 0;
    for (std::int64_t block = 0; block < blocks; ++block, count += columns)
        for (int begin = 0; begin < columns; begin += lanes)
            for (int i = 0; i < lanes; ++i) {
                calls.key[0][count + begin + i] = keys[block].word[0];
                calls.key[1][count + begin + i] = keys[block].word[1];
                calls.column[count + begin + i] = first + static_cast<std::uint32_t>(begin + i);
            }
    for (int begin = 0; begin < count; begin += DropoutMask::lanes)
        for (int i = begin; i < begin + DropoutMask::lanes; ++i) {
            const PhiloxCounter drawn = philox4x32(mask.counter(sample, calls.column[i]),
                                                   {{calls.key[0][i], calls.key[1][i]}});
            for (int w = 0; w < 4; ++w)
                calls.word[w][i] = drawn.word[w];
        }
}

/// The rows of a matrix that its blocks have not taken yet.
class RowsLeft {
public:
    HETSEQ_ALWAYS_INLINE explicit RowsLeft(const DropoutBlocks& blocks)
        : rows_{blocks.matrix_rows}, left_{blocks.matrix_rows - blocks.first * most} {}

    HETSEQ_ALWAYS_INLINE int in_block() const { return static_cast<int>(std::min(most, left_)); }
    HETSEQ_ALWAYS_INLINE void next_block() { left_ = left_ > most ? left_ - most : rows_; }

private:
    static constexpr std::int64_t most = DropoutMatrices::block_rows;
    std::int64_t rows_, left_;
};

/// Row `row` of a block whose first call is `call`. Vectors of `lanes` columns: what they write
/// behind the row, the next row writes again.
template <int lanes>
HETSEQ_ALWAYS_INLINE void decide_row(
    Calls& calls, std::uint32_t threshold, int row, int call, int columns, std::int32_t* keep) {
    const int shift = 16 * (row % 2);
    const std::uint32_t* word = calls.word[row / 2] + call;
    for (int begin = 0; begin < columns; begin += lanes)
        for (int i = begin; i < begin + lanes; ++i)
            keep[i] = decide(word[i], shift, threshold);
}

template <class T>
HETSEQ_ALWAYS_INLINE void apply_mask(
    const std::int32_t* keep, T scale, const T* x, T* out, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        out[i] = kept_or_zero(x[i] * scale, keep[i]);
}

/// Whole blocks, which lie one behind the other, of at most `narrow_calls` columns together.
template <int lanes, class T>
HETSEQ_ALWAYS_INLINE void drop_narrow_blocks(const DropoutMask& mask,
                                             const DropoutBlocks& blocks,
                                             const T* x,
                                             T* out) {
    Calls calls;
    const int columns = static_cast<int>(blocks.columns);
    RowsLeft rows{blocks};
    const std::int64_t together = narrow_calls / columns;
    for (std::int64_t first = 0; first < blocks.count; first += together) {
        const std::int64_t count = std::min(together, blocks.count - first);
        draw_calls<lanes>(mask, blocks.sample, blocks.keys + first, count, 0, columns, calls);
        std::int32_t* keep = calls.keep;
        for (int i = 0; i < count; ++i) {
            for (int row = 0; row < rows.in_block(); ++row, keep += columns)
                decide_row<lanes>(calls, mask.threshold, row, i * columns, columns, keep);
            rows.next_block();
        }
        const std::int64_t elements = keep - calls.keep;
        apply_mask(calls.keep, static_cast<T>(mask.scale()), x, out, elements);
        x += elements;
        out += elements;
    }
}

/// A row, by the low or the high half of `word` of each column. The local array spares the compiler
/// a check for aliases at each vector.
template <int shift, class T>
HETSEQ_ALWAYS_INLINE void drop_row(
    const std::uint32_t* word, std::uint32_t threshold, T scale, const T* x, T* out, int columns) {
    constexpr int lanes = DropoutMask::lanes;
    int begin = 0;
    for (; begin + lanes <= columns; begin += lanes) {
        T kept[lanes];
        for (int i = 0; i < lanes; ++i)
            kept[i] = kept_or_zero(x[begin + i] * scale, decide(word[begin + i], shift, threshold));
        for (int i = 0; i < lanes; ++i)
            out[begin + i] = kept[i];
    }
    for (; begin < columns; ++begin)
        out[begin] = kept_or_zero(x[begin] * scale, decide(word[begin], shift, threshold));
}

/// Blocks whose rows fill vectors, some columns at a time.
template <class T>
HETSEQ_ALWAYS_INLINE void drop_wide_blocks(const DropoutMask& mask,
                                           const DropoutBlocks& blocks,
                                           const T* x,
                                           T* out) {
    Calls calls;
    RowsLeft left{blocks};
    const T scale = static_cast<T>(mask.scale());
    for (std::int64_t block = 0; block < blocks.count; ++block) {
        const int rows = left.in_block();
        for (std::int64_t first = 0; first < blocks.columns; first += most_calls) {
            const int columns =
                static_cast<int>(std::min<std::int64_t>(most_calls, blocks.columns - first));
            draw_calls<DropoutMask::lanes>(mask,
                                           blocks.sample,
                                           blocks.keys + block,
                                           1,
                                           static_cast<std::uint32_t>(first),
                                           columns,
                                           calls);
            for (int row = 0; row < rows; ++row) {
                const std::int64_t begin = row * blocks.columns + first;
                const std::uint32_t* word = calls.word[row / 2];
                if (row % 2 == 0)
                    drop_row<0>(word, mask.threshold, scale, x + begin, out + begin, columns);
                else
                    drop_row<16>(word, mask.threshold, scale, x + begin, out + begin, columns);
            }
        }
        left.next_block();
        x += rows * blocks.columns;
        out += rows * blocks.columns;
    }
}

template <class T>
HETSEQ_ALWAYS_INLINE void drop_blocks_of(const DropoutMask& mask,
                                         const DropoutBlocks& blocks,
                                         const T* x,
                                         T* out) {
    if (blocks.columns >= 64)
        drop_wide_blocks(mask, blocks, x, out);
    else if (blocks.columns > 8)
        drop_narrow_blocks<16>(mask, blocks, x, out);
    else if (blocks.columns > 4)
        drop_narrow_blocks<8>(mask, blocks, x, out);
    else if (blocks.columns > 1)
        drop_narrow_blocks<4>(mask, blocks, x, out);
    else
        drop_narrow_blocks<1>(mask, blocks, x, out);
}

}  // namespace

HETSEQ_VECTOR_CLONES
void drop_blocks(const DropoutMask& mask, const DropoutBlocks& blocks, const float* x, float* out) {
    drop_blocks_of(mask, blocks, x, out);
}

HETSEQ_VECTOR_CLONES
void drop_blocks(const DropoutMask& mask,
                 const DropoutBlocks& blocks,
                 const double* x,
                 double* out) {
    drop_blocks_of(mask, blocks, x, out);
}

HETSEQ_VECTOR_CLONES
void drop(const DropoutMask& mask, const DropoutPiece& piece, const float* x, float* out) {
    drop_piece(mask, piece, x, out);
}

HETSEQ_VECTOR_CLONES
void drop(const DropoutMask& mask, const DropoutPiece& piece, const double* x, double* out) {
    drop_piece(mask, piece, x, out);
}

}  // namespace hetseq::detail
