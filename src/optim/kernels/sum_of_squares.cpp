#include "sum_of_squares.hpp"

#include "hetseq/util/vector_clones.hpp"

namespace hetseq::detail {

namespace {

constexpr int lanes = 16;

template <class T>
HETSEQ_ALWAYS_INLINE double sum(const T* x, std::int64_t count) {
    double sums[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (int lane = 0; lane < lanes; ++lane) {
            const auto value = static_cast<double>(x[i + lane]);
            sums[lane] += value * value;
        }
    for (; i < count; ++i)
        sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    double total = 0;
    for (const double part : sums)
        total += part;
    return total;
}

}  // namespace

HETSEQ_VECTOR_CLONES double sum_of_squares(const float* x, std::int64_t count) {
    return sum(x, count);
}

HETSEQ_VECTOR_CLONES double sum_of_squares(const double* x, std::int64_t count) {
    return sum(x, count);
}

}  // namespace hetseq::detail
