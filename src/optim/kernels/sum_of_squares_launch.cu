#include "sum_of_squares_launch.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "sum_of_squares.cuh"

namespace hetseq::detail {

unsigned sums_of_squares(std::int64_t count) {
    return square_blocks(count);
}

template <class T>
void launch_sum_of_squares(const T* x, std::int64_t count, double* sums, cudaStream_t stream) {
    sum_of_squares<T><<<square_blocks(count), square_block_threads, 0, stream>>>(x, count, sums);
}

template void launch_sum_of_squares(const float*, std::int64_t, double*, cudaStream_t);
template void launch_sum_of_squares(const double*, std::int64_t, double*, cudaStream_t);
template void launch_sum_of_squares(const c10::Half*, std::int64_t, double*, cudaStream_t);
template void launch_sum_of_squares(const c10::BFloat16*, std::int64_t, double*, cudaStream_t);

}  // namespace hetseq::detail
