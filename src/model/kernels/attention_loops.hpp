#pragma once

#include <cstdint>

#include "dropout_mask.hpp"

namespace hetseq::detail {

/// Rows of one sequence's attention, (rows, columns) without gaps.
template <class T>
struct AttentionRows {
    std::int64_t rows = 0, columns = 0;
    T* scores = nullptr;  // in: products of query and key; out: their probabilities, negative where
                          // dropout takes them away
    T* kept = nullptr;    // out: the probabilities after dropout
    double factor = 1;    // products are multiplied by it before their softmax
};

/// The dropout of these rows: row i begins with the chunk `first_chunks[i]` of the sample.
struct AttentionDropout {
    const DropoutMask* mask = nullptr;  // null: no dropout, and `kept` is not written
    std::uint64_t sample = 0;
    const std::uint32_t* first_chunks = nullptr;
};

/// Softmax along each row, then dropout.
void attention_softmax(const AttentionRows<float>& rows, const AttentionDropout& dropout);
void attention_softmax(const AttentionRows<double>& rows, const AttentionDropout& dropout);

/// Replaces `gradients` (rows, columns), those of the probabilities after dropout, by those of the
/// products. `rows.scores` is as `attention_softmax` left it, `scale` the dropout's, 1 without
/// dropout. Writes `rows.kept` again, where it is not null.
void attention_softmax_backward(const AttentionRows<float>& rows, double scale, float* gradients);
void attention_softmax_backward(const AttentionRows<double>& rows, double scale, double* gradients);

}  // namespace hetseq::detail
