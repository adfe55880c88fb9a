#include "adadelta_loop.hpp"

#include <cmath>

#include "hetseq/util/vector_clones.hpp"

#if defined(__GNUC__) && !defined(__clang__) && !defined(__NO_MATH_ERRNO__)
#error \
    "without -fno-math-errno the square roots are not vectorised, and the loop takes five times as long"
#endif

namespace hetseq::detail {

namespace {

template <class T>
HETSEQ_ALWAYS_INLINE void update(T* __restrict value,
                                 const T* __restrict gradient,
                                 T* __restrict square_avg,
                                 T* __restrict acc_delta,
                                 std::int64_t count,
                                 const AdadeltaStep& step) {
    const T lr = static_cast<T>(step.lr), rho = static_cast<T>(step.rho);
    const T rest = static_cast<T>(1 - step.rho), eps = static_cast<T>(step.eps);
    const T decay = static_cast<T>(step.weight_decay);
    for (std::int64_t i = 0; i < count; ++i) {
        const T g = gradient[i] + decay * value[i];
        square_avg[i] = rho * square_avg[i] + rest * g * g;
        const T delta = std::sqrt(acc_delta[i] + eps) / std::sqrt(square_avg[i] + eps) * g;
        acc_delta[i] = rho * acc_delta[i] + rest * delta * delta;
        value[i] -= lr * delta;
    }
}

}  // namespace

HETSEQ_VECTOR_CLONES
void adadelta_loop(float* value,
                   const float* gradient,
                   float* square_avg,
                   float* acc_delta,
                   std::int64_t count,
                   const AdadeltaStep& step) {
    update(value, gradient, square_avg, acc_delta, count, step);
}

HETSEQ_VECTOR_CLONES
void adadelta_loop(double* value,
                   const double* gradient,
                   double* square_avg,
                   double* acc_delta,
                   std::int64_t count,
                   const AdadeltaStep& step) {
    update(value, gradient, square_avg, acc_delta, count, step);
}

}  // namespace hetseq::detail
