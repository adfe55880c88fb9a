#include "matrix_loops.hpp"

#include <algorithm>
#include <cstring>

#include "hetseq/util/vector_clones.hpp"

namespace hetseq::detail {

namespace {

/// A processor's registers: Bytes of a vector, and the rows and vectors of the tile that is
/// computed in them.
template <int VectorBytes, int TileRows, int TileVectors>
struct Registers {
    static constexpr int vector_bytes = VectorBytes, rows = TileRows, vectors = TileVectors;
};

template <class T, int Bytes>
struct VectorOf {
    using Type __attribute__((vector_size(Bytes))) = T;
    static constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
};

/// One tile of the output: Rows rows, Vectors vectors wide.
template <class T, int Bytes, int Rows, int Vectors>
HETSEQ_ALWAYS_INLINE void multiply_tile(
    const PanelProduct<T>& product, const T* left, const T* panel, const T* bias, T* out) {
    using Vector = typename VectorOf<T, Bytes>::Type;
    constexpr int lanes = VectorOf<T, Bytes>::lanes;
    Vector sums[Rows][Vectors] = {};
    for (std::int64_t k = 0; k < product.depth; ++k) {
        Vector right[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v)
            std::memcpy(&right[v], panel + k * panel_width<T> + v * lanes, Bytes);
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
            const T factor = left[row * product.left_stride + k];
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v)
                sums[row][v] += right[v] * factor;
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            Vector shift;
            std::memcpy(&shift, bias + v * lanes, Bytes);
            Vector sum = sums[row][v] + shift;
            if (product.relu)
                sum = sum > T(0) ? sum : Vector{};
            std::memcpy(out + row * product.out_stride + v * lanes, &sum, Bytes);
        }
}

/// The last rows, fewer than Rows + 1.
template <class T, int Bytes, int Rows, int Vectors>
HETSEQ_ALWAYS_INLINE void multiply_rest(const PanelProduct<T>& product,
                                        std::int64_t rows,
                                        const T* left,
                                        const T* panel,
                                        const T* bias,
                                        T* out) {
    if constexpr (Rows > 0) {
        if (rows == Rows)
            multiply_tile<T, Bytes, Rows, Vectors>(product, left, panel, bias, out);
        else
            multiply_rest<T, Bytes, Rows - 1, Vectors>(product, rows, left, panel, bias, out);
    }
}

/// All rows of Vectors vectors, from `column` on.
template <class T, class Registers, int Vectors>
HETSEQ_ALWAYS_INLINE void multiply_columns(const PanelProduct<T>& product, std::int64_t column) {
    constexpr int bytes = Registers::vector_bytes, tile = Registers::rows;
    const std::int64_t panel = column / panel_width<T>;
    const T* right =
        product.panels + panel * panel_width<T> * product.depth + column % panel_width<T>;
    for (std::int64_t row = 0; row < product.rows; row += tile)
        multiply_rest<T, bytes, tile, Vectors>(product,
                                               std::min<std::int64_t>(tile, product.rows - row),
                                               product.left + row * product.left_stride,
                                               right,
                                               product.bias + column,
                                               product.out + row * product.out_stride + column);
}

template <class T, class Registers>
HETSEQ_ALWAYS_INLINE void multiply_all(const PanelProduct<T>& product) {
    constexpr int lanes = VectorOf<T, Registers::vector_bytes>::lanes;
    constexpr int tile = Registers::vectors * lanes;
    static_assert(panel_width<T> % tile == 0);
    const std::int64_t end = whole_groups<T>(product.columns);
    std::int64_t column = 0;
    for (; column + tile <= end; column += tile)
        multiply_columns<T, Registers, Registers::vectors>(product, column);
    if constexpr (Registers::vectors == 3) {
        if (column + 2 * lanes == end)
            multiply_columns<T, Registers, 2>(product, column);
        else if (column < end)
            multiply_columns<T, Registers, 1>(product, column);
    }
}

// 32 registers of 64 bytes, 16 of 32 bytes, 16 of 16 bytes: each tile leaves some for the factors.
using WideRegisters = Registers<64, 8, 3>;
using MiddleRegisters = Registers<32, 6, 2>;
using NarrowRegisters = Registers<16, 4, 2>;

template <class T>
using Multiply = void (*)(const PanelProduct<T>&);

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

template <class T>
__attribute__((target("arch=x86-64-v4"))) void multiply_wide(const PanelProduct<T>& product) {
    multiply_all<T, WideRegisters>(product);
}

template <class T>
__attribute__((target("arch=x86-64-v3"))) void multiply_middle(const PanelProduct<T>& product) {
    multiply_all<T, MiddleRegisters>(product);
}

template <class T>
void multiply_narrow(const PanelProduct<T>& product) {
    multiply_all<T, NarrowRegisters>(product);
}

template <class T>
Multiply<T> best_multiply() {
    if (__builtin_cpu_supports("x86-64-v4"))
        return multiply_wide<T>;
    return __builtin_cpu_supports("x86-64-v3") ? multiply_middle<T> : multiply_narrow<T>;
}

#else

template <class T>
Multiply<T> best_multiply() {
    return multiply_all<T, NarrowRegisters>;
}

#endif

}  // namespace

void multiply(const PanelProduct<float>& product) {
    static const Multiply<float> best = best_multiply<float>();
    best(product);
}

void multiply(const PanelProduct<double>& product) {
    static const Multiply<double> best = best_multiply<double>();
    best(product);
}

}  // namespace hetseq::detail
