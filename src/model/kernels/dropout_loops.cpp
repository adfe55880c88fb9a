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

/// `value` or 0, by arithmetic: g++ 12 makes wrong AVX-512 code of the conditional in loops over
/// doubles.
template <class T>
HETSEQ_ALWAYS_INLINE T kept_or_zero(T value, bool keep) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<T>(std::bit_cast<Bits>(value) & (Bits{0} - static_cast<Bits>(keep)));
}

/// A row, by the low or the high half of word `w` of each column's call. The local array spares the
/// compiler a check for aliases at each chunk.
template <int shift, class T>
HETSEQ_ALWAYS_INLINE void drop_row(const DropoutBits* bits,
                                   int w,
                                   std::uint32_t threshold,
                                   T scale,
                                   const T* x,
                                   T* out,
                                   int count) {
    constexpr int lanes = DropoutMask::lanes;
    const auto keep = [&](int lane) {
        return ((bits->word[w][lane] >> shift) & 0xFFFFu) < threshold;
    };
    int begin = 0;
    for (; begin + lanes <= count; begin += lanes, ++bits) {
        T kept[lanes];
        for (int lane = 0; lane < lanes; ++lane)
            kept[lane] = kept_or_zero(x[begin + lane] * scale, keep(lane));
        for (int lane = 0; lane < lanes; ++lane)
            out[begin + lane] = kept[lane];
    }
    for (int lane = 0; lane < count - begin; ++lane)
        out[begin + lane] = kept_or_zero(x[begin + lane] * scale, keep(lane));
}

/// The bits of some columns are drawn first, so that each row is then written in one go.
template <class T>
HETSEQ_ALWAYS_INLINE void drop_row_block(const DropoutMask& mask,
                                         const DropoutRows& rows,
                                         const T* x,
                                         T* out) {
    constexpr int lanes = DropoutMask::lanes;
    constexpr int most_chunks = 16;
    const T scale = static_cast<T>(mask.scale());
    DropoutBits bits[most_chunks];
    std::uint32_t chunk = 0;
    for (std::int64_t first = 0; first < rows.columns; first += most_chunks * lanes) {
        const int count =
            static_cast<int>(std::min<std::int64_t>(rows.columns - first, most_chunks * lanes));
        for (int i = 0; i * lanes < count; ++i)
            draw_chunk(mask, rows.sample, chunk++, bits[i]);
        const T* from = x + first;
        T* to = out + first;
        for (int row = 0; row < rows.rows; ++row, from += rows.columns, to += rows.columns) {
            if (row % 2 == 0)
                drop_row<0>(bits, row / 2, mask.threshold, scale, from, to, count);
            else
                drop_row<16>(bits, row / 2, mask.threshold, scale, from, to, count);
        }
    }
}

/// Where a vector of columns would be mostly empty.
template <class T>
HETSEQ_ALWAYS_INLINE void drop_narrow_rows(const DropoutMask& mask,
                                           const DropoutRows& rows,
                                           const T* x,
                                           T* out) {
    const T scale = static_cast<T>(mask.scale());
    for (std::int64_t column = 0; column < rows.columns; ++column) {
        const PhiloxCounter bits =
            philox4x32(mask.counter(rows.sample, static_cast<std::uint32_t>(column)), mask.key);
        for (int row = 0; row < rows.rows; ++row) {
            const std::int64_t i = row * rows.columns + column;
            out[i] = kept_or_zero(x[i] * scale, DropoutMask::slot_of(bits, row) < mask.threshold);
        }
    }
}

template <class T>
HETSEQ_ALWAYS_INLINE void drop_rows_of(const DropoutMask& mask,
                                       const DropoutRows& rows,
                                       const T* x,
                                       T* out) {
    if (rows.columns < 4)
        drop_narrow_rows(mask, rows, x, out);
    else
        drop_row_block(mask, rows, x, out);
}

}  // namespace

HETSEQ_VECTOR_CLONES
void drop_rows(const DropoutMask& mask, const DropoutRows& rows, const float* x, float* out) {
    drop_rows_of(mask, rows, x, out);
}

HETSEQ_VECTOR_CLONES
void drop_rows(const DropoutMask& mask, const DropoutRows& rows, const double* x, double* out) {
    drop_rows_of(mask, rows, x, out);
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
