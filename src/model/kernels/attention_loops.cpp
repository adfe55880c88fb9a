#include "attention_loops.hpp"

#include "hetseq/util/vector_clones.hpp"

#include "dropout_loops.hpp"
#include "fast_exp.hpp"

namespace hetseq::detail {

namespace {

constexpr int row_lanes = 32;

// By lanes, so that the compiler may vectorise: the order of the sum is given.
template <class T, class Value>
HETSEQ_ALWAYS_INLINE T sum_of_row(std::int64_t count, const Value& value) {
    T sums[row_lanes] = {};
    const std::int64_t even = count - count % row_lanes;
    for (std::int64_t i = 0; i < even; i += row_lanes)
        for (int lane = 0; lane < row_lanes; ++lane)
            sums[lane] += value(i + lane);
    for (int width = row_lanes / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; ++lane)
            sums[lane] += sums[lane + width];
    T sum = sums[0];
    for (std::int64_t i = even; i < count; ++i)
        sum += value(i);
    return sum;
}

template <class T>
HETSEQ_ALWAYS_INLINE T highest_of_row(const T* row, std::int64_t count) {
    T high[row_lanes];
    for (T& value : high)
        value = row[0];
    const std::int64_t even = count - count % row_lanes;
    for (std::int64_t i = 0; i < even; i += row_lanes)
        for (int lane = 0; lane < row_lanes; ++lane)
            high[lane] = row[i + lane] > high[lane] ? row[i + lane] : high[lane];
    T highest = high[0];
    for (const T value : high)
        highest = value > highest ? value : highest;
    for (std::int64_t i = even; i < count; ++i)
        highest = row[i] > highest ? row[i] : highest;
    return highest;
}

// exp(factor * (x - highest)) in place; returns the inverse of their sum.
template <class T>
HETSEQ_ALWAYS_INLINE T exponentials(T* row, std::int64_t count, T factor) {
    const T highest = highest_of_row(row, count);
    for (std::int64_t i = 0; i < count; ++i)
        row[i] = fast_exp((row[i] - highest) * factor);
    return 1 / sum_of_row<T>(count, [&](std::int64_t i) { return row[i]; });
}

template <class T>
HETSEQ_ALWAYS_INLINE void drop_row(
    const AttentionDropout& dropout, std::uint32_t chunk, T* row, T* kept, std::int64_t count) {
    drop(*dropout.mask, {dropout.sample, chunk, count}, row, kept);
    for (std::int64_t i = 0; i < count; ++i)
        row[i] = kept[i] == 0 ? -row[i] : row[i];
}

template <class T>
HETSEQ_ALWAYS_INLINE void softmax_rows(const AttentionRows<T>& rows,
                                       const AttentionDropout& dropout) {
    for (std::int64_t i = 0; i < rows.rows; ++i) {
        T* const row = rows.scores + i * rows.columns;
        const T inverse = exponentials(row, rows.columns, static_cast<T>(rows.factor));
        for (std::int64_t k = 0; k < rows.columns; ++k)
            row[k] *= inverse;
        if (dropout.mask != nullptr)
            drop_row(
                dropout, dropout.first_chunks[i], row, rows.kept + i * rows.columns, rows.columns);
    }
}

// With p the probabilities and g the gradients of those that are kept, 0 of the others, the
// products have the gradients factor * p * (g - sum(p g)).
template <class T>
HETSEQ_ALWAYS_INLINE void backward_rows(const AttentionRows<T>& rows,
                                        double dropout_scale,
                                        T* gradients) {
    const T scale = static_cast<T>(dropout_scale), factor = static_cast<T>(rows.factor);
    const auto positive = [](T value) { return value > 0 ? value : T(0); };
    for (std::int64_t i = 0; i < rows.rows; ++i) {
        const T* const row = rows.scores + i * rows.columns;
        T* const gradient = gradients + i * rows.columns;
        const T mean = scale * sum_of_row<T>(rows.columns, [&](std::int64_t k) {
                           return positive(row[k]) * gradient[k];
                       });
        for (std::int64_t k = 0; k < rows.columns; ++k) {
            const T own = positive(row[k]) * gradient[k] * scale;
            gradient[k] = (own - (row[k] < 0 ? -row[k] : row[k]) * mean) * factor;
        }
        if (rows.kept == nullptr)
            continue;
        T* const kept = rows.kept + i * rows.columns;
        for (std::int64_t k = 0; k < rows.columns; ++k)
            kept[k] = positive(row[k]) * scale;
    }
}

}  // namespace

HETSEQ_VECTOR_CLONES
void attention_softmax(const AttentionRows<float>& rows, const AttentionDropout& dropout) {
    softmax_rows(rows, dropout);
}

HETSEQ_VECTOR_CLONES
void attention_softmax(const AttentionRows<double>& rows, const AttentionDropout& dropout) {
    softmax_rows(rows, dropout);
}

HETSEQ_VECTOR_CLONES
void attention_softmax_backward(const AttentionRows<float>& rows, double scale, float* gradients) {
    backward_rows(rows, scale, gradients);
}

HETSEQ_VECTOR_CLONES
void attention_softmax_backward(const AttentionRows<double>& rows,
                                double scale,
                                double* gradients) {
    backward_rows(rows, scale, gradients);
}

}  // namespace hetseq::detail
