#pragma once

#include <cstdint>

namespace hetseq::detail {

/// Squares and sum in fp64, in an order that depends on `count` alone.
double sum_of_squares(const float* x, std::int64_t count);
double sum_of_squares(const double* x, std::int64_t count);

}  // namespace hetseq::detail
