// What the kernels of Transformers work on, without LibTorch's headers.
#pragma once

#include <cstdint>

#include "model/kernels/computed_type.hpp"
#include "model/kernels/dropout_grid.hpp"

namespace hetseq::detail {

/// A row of a sample in the numbers of dropout's Philox calls.
struct DropoutRow {
    std::uint64_t sample = 0;
    std::uint32_t first_call = 0;  // that touches the row
    std::uint32_t skipped = 0;     // elements of its chunk before the row
};

inline constexpr unsigned row_block_threads = 256;

/// Scores (samples, heads, queries, columns) and what lies over them.
struct ScorePlaces {
    std::uint32_t rows = 0;  // samples * heads * queries
    std::uint32_t heads = 1;
    std::uint32_t queries = 0;
    std::uint32_t columns = 0;
    bool is_causal = false;      // query i sees keys 0 to i
    double scale = 1;            // of scores
    const bool* keys = nullptr;  // (samples, columns), false for padding; null: all are seen
    const std::int64_t* sample_ids = nullptr;  // (samples); null without dropout
    DropoutMask mask{};
    double keep_scale = 1;  // of what dropout keeps
    DropoutGrid grid{};
};

/// Rows (rows, columns): which sample's element each one begins with, for dropout.
struct TokenPlaces {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    double eps = 0;  // of a normalisation
    const std::int64_t* sample_ids =
        nullptr;  // by row, or one for `rows_of_sample`; null: no dropout
    const std::int64_t* positions = nullptr;  // by row; null: row % rows_of_sample
    std::uint32_t rows_of_sample = 1;
    DropoutMask mask{};
    double keep_scale = 1;      // of what dropout keeps
    bool drops_output = false;  // of a normalisation, in place of x

    HETSEQ_HOST_DEVICE DropoutRow dropout_of(std::uint32_t row) const {
        if (sample_ids == nullptr)
            return {};
        const bool by_row = positions != nullptr;
        const std::int64_t sample = sample_ids[by_row ? row : row / rows_of_sample];
        const std::uint64_t first =
            static_cast<std::uint64_t>(by_row ? positions[row] : row % rows_of_sample) * columns;
        return {static_cast<std::uint64_t>(sample),
                static_cast<std::uint32_t>(first / DropoutMask::chunk) * DropoutMask::lanes,
                static_cast<std::uint32_t>(first % DropoutMask::chunk)};
    }
};

/// What `residual_norm` writes, beside `sums`, the residual plus x after dropout.
template <class T>
struct NormOutputs {
    using Value = ComputedType<T>;

    Value* sums = nullptr;                // (rows, columns)
    Value* means = nullptr;               // (rows)
    Value* inverse_deviations = nullptr;  // (rows)
    Value* wide = nullptr;                // (rows, columns)
    T* narrow = nullptr;                  // the same in the type of products; null: `wide` has it
};

/// wide[i] + narrow[i], of which either may be null.
template <class T>
HETSEQ_HOST_DEVICE ComputedType<T> sum_of(const ComputedType<T>* wide,
                                          const T* narrow,
                                          std::int64_t i) {
    using Value = ComputedType<T>;
    return (wide == nullptr ? Value(0) : wide[i]) +
           (narrow == nullptr ? Value(0) : static_cast<Value>(narrow[i]));
}

/// What `residual_norm` kept, and the gradients of its outputs; either may be null.
template <class T>
struct NormGradients {
    using Value = ComputedType<T>;

    const Value* sums = nullptr;
    const Value* means = nullptr;
    const Value* inverse_deviations = nullptr;
    const Value* wide = nullptr;
    const T* narrow = nullptr;

    HETSEQ_HOST_DEVICE Value of_output(std::int64_t i) const { return sum_of(wide, narrow, i); }
};

/// What `residual_norm` takes for each column; with Value const, and their gradients.
template <class Value>
struct NormParameters {
    Value* weight = nullptr;
    Value* bias = nullptr;
    Value* x_bias = nullptr;  // null where x has no bias
};

enum class Activation { gelu, gelu_tanh, relu, silu, tanh };
/// Whether backward needs the output alone. It may then lie where the product lay.
HETSEQ_HOST_DEVICE constexpr bool is_kept_output(Activation activation) {
    return activation == Activation::relu || activation == Activation::tanh;
}
/// Of a row, what a team of `bias_activation` computes.
inline constexpr std::uint32_t activation_columns = 512;

/// Tables (..., columns) of which `embedding_sum` adds a row each.
template <class Value>
struct EmbeddingTables {
    const Value* words = nullptr;
    const std::int64_t* ids = nullptr;  // by row
    double scale = 1;                   // of the words
    const Value* positions = nullptr;
    const std::int64_t* position_ids = nullptr;  // by row; null: row % length
    std::uint32_t length = 1;
    const Value* segments = nullptr;            // null: none
    const std::int64_t* segment_ids = nullptr;  // by row

    HETSEQ_HOST_DEVICE std::int64_t position_of(std::uint32_t row) const {
        return position_ids == nullptr ? row % length : position_ids[row];
    }
};

inline constexpr unsigned head_block_threads = 256;
inline constexpr int most_head_parts = 3;  // queries, keys and values side by side

/// Rows (rows, parts * heads * width) of tokens, and for each part (samples, heads, length, width).
struct HeadPlaces {
    std::uint32_t samples = 0;
    std::uint32_t length = 0;
    std::uint32_t heads = 1;
    std::uint32_t width = 0;
    std::uint32_t rows = 0;
    int parts = 1;
    const std::int64_t* places =
        nullptr;  // by row, in samples * length; null: rows are all of them
    const std::int64_t* row_of = nullptr;  // by place, -1 for padding; null likewise

    std::uint32_t columns() const { return heads * width; }
};

template <class P>
struct HeadParts {
    P* of[most_head_parts] = {};
};

}  // namespace hetseq::detail
