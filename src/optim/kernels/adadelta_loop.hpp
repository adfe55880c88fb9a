#pragma once

#include <cstdint>

namespace hetseq::detail {

struct AdadeltaStep {
    double lr = 1;
    double rho = 0.9;
    double eps = 1e-6;
    double weight_decay = 0;
};

/// One step over `count` elements.
void adadelta_loop(float* value,
                   const float* gradient,
                   float* square_avg,
                   float* acc_delta,
                   std::int64_t count,
                   const AdadeltaStep& step);
void adadelta_loop(double* value,
                   const double* gradient,
                   double* square_avg,
                   double* acc_delta,
                   std::int64_t count,
                   const AdadeltaStep& step);

}  // namespace hetseq::detail
