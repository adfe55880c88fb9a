#pragma once

#include <cstdint>

namespace hetseq::detail {

/// Layer normalisation: out = norm(x + residual), each (rows, width), rows `stride` apart.
/// `residual` may be null, and `out` may be one of the others.
template <class T>
struct Normalisation {
    const T* x = nullptr;
    const T* residual = nullptr;
    T* out = nullptr;
    std::int64_t rows = 0;
    std::int64_t width = 0;
    std::int64_t stride = 0;
    const T* weight = nullptr;  // (width)
    const T* bias = nullptr;    // (width)
    double eps = 0;
};

void normalise(const Normalisation<float>& norm);
void normalise(const Normalisation<double>& norm);

/// to += from
void add_to(float* to, const float* from, std::int64_t count);
void add_to(double* to, const double* from, std::int64_t count);

/// x * Phi(x) in place, by the error function; the same bits wherever an element stands.
void gelu(float* x, std::int64_t count);
void gelu(double* x, std::int64_t count);

/// out = a * scale + b
void scale_and_add(const float* a, float scale, const float* b, float* out, std::int64_t count);
void scale_and_add(const double* a, double scale, const double* b, double* out, std::int64_t count);

}  // namespace hetseq::detail
