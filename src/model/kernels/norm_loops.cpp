#include "norm_loops.hpp"

#include <cmath>

#include "hetseq/util/vector_clones.hpp"

namespace hetseq::detail {

namespace {

// Sums go by lanes, so that they need no order that the compiler may not change.
constexpr int norm_lanes = 16;

/// Sum of x[i] - mean, or of its squares.
template <int Power, class T>
HETSEQ_ALWAYS_INLINE double moment(const T* x, T mean, std::int64_t count) {
    T sums[norm_lanes] = {};
    const std::int64_t even = count - count % norm_lanes;
    for (std::int64_t i = 0; i < even; i += norm_lanes)
        for (int lane = 0; lane < norm_lanes; ++lane) {
            const T difference = x[i + lane] - mean;
            sums[lane] += Power == 1 ? difference : difference * difference;
        }
    double sum = 0;
    for (const T lane : sums)
        sum += static_cast<double>(lane);
    for (std::int64_t i = even; i < count; ++i) {
        const T difference = x[i] - mean;
        sum += static_cast<double>(Power == 1 ? difference : difference * difference);
    }
    return sum;
}

template <class T>
HETSEQ_ALWAYS_INLINE void normalise_row(const Normalisation<T>& norm, std::int64_t row) {
    const auto width = static_cast<double>(norm.width);
    const T* x = norm.x + row * norm.stride;
    T* out = norm.out + row * norm.stride;
    if (norm.residual != nullptr) {
        const T* residual = norm.residual + row * norm.stride;
        for (std::int64_t i = 0; i < norm.width; ++i)
            out[i] = x[i] + residual[i];
        x = out;
    }
    const T mean = static_cast<T>(moment<1>(x, T(0), norm.width) / width);
    const double variance = moment<2>(x, mean, norm.width) / width;
    const T factor = static_cast<T>(1 / std::sqrt(variance + norm.eps));
    for (std::int64_t i = 0; i < norm.width; ++i)
        out[i] = (x[i] - mean) * factor * norm.weight[i] + norm.bias[i];
}

template <class T>
void gelu_of(T* x, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        x[i] *= T(0.5) * (T(1) + std::erf(x[i] * T(M_SQRT1_2)));
}

}  // namespace

HETSEQ_VECTOR_CLONES
void normalise(const Normalisation<float>& norm) {
    for (std::int64_t row = 0; row < norm.rows; ++row)
        normalise_row(norm, row);
}

HETSEQ_VECTOR_CLONES
void normalise(const Normalisation<double>& norm) {
    for (std::int64_t row = 0; row < norm.rows; ++row)
        normalise_row(norm, row);
}

HETSEQ_VECTOR_CLONES
void add_to(float* to, const float* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        to[i] += from[i];
}

HETSEQ_VECTOR_CLONES
void add_to(double* to, const double* from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        to[i] += from[i];
}

void gelu(float* x, std::int64_t count) {
    gelu_of(x, count);
}

void gelu(double* x, std::int64_t count) {
    gelu_of(x, count);
}

HETSEQ_VECTOR_CLONES
void scale_and_add(const float* a, float scale, const float* b, float* out, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        out[i] = a[i] * scale + b[i];
}

HETSEQ_VECTOR_CLONES
void scale_and_add(
    const double* a, double scale, const double* b, double* out, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        out[i] = a[i] * scale + b[i];
}

}  // namespace hetseq::detail
