#include "adadelta_launch.hpp"

#include "adadelta.cuh"

namespace hetseq::detail {

template <class T>
void launch_adadelta(const AdadeltaArrays<T>& arrays,
                     const AdadeltaStep& step,
                     cudaStream_t stream) {
    adadelta<T><<<adadelta_blocks(arrays.count), adadelta_block_threads, 0, stream>>>(
        arrays.values,
        arrays.gradients,
        arrays.square_avg,
        arrays.acc_delta,
        arrays.count,
        arrays.closed,
        AdadeltaFactors<T>(step));
}

template void launch_adadelta(const AdadeltaArrays<float>&, const AdadeltaStep&, cudaStream_t);
template void launch_adadelta(const AdadeltaArrays<double>&, const AdadeltaStep&, cudaStream_t);

}  // namespace hetseq::detail
