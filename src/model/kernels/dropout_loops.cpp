#include "dropout_loops.hpp"

#include <algorithm>

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

}  // namespace

HETSEQ_VECTOR_CLONES
void drop(const DropoutMask& mask, const DropoutPiece& piece, const float* x, float* out) {
    drop_piece(mask, piece, x, out);
}

HETSEQ_VECTOR_CLONES
void drop(const DropoutMask& mask, const DropoutPiece& piece, const double* x, double* out) {
    drop_piece(mask, piece, x, out);
}

}  // namespace hetseq::detail
