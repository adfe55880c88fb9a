#include "counter_dropout_launch.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "counter_dropout.cuh"

namespace hetseq::detail {

template <class T>
void launch_dropout(const DropoutTensors<T>& tensors,
                    const DropoutMask& mask,
                    const DropoutGrid& grid,
                    cudaStream_t stream) {
    const dim3 blocks(dropout_blocks(grid), dropout_sample_blocks(tensors.samples));
    drop<T>
        <<<blocks, dropout_block_threads, 0, stream>>>(tensors.x,
                                                       tensors.out,
                                                       tensors.sample_ids,
                                                       tensors.samples,
                                                       mask,
                                                       grid,
                                                       static_cast<ComputedType<T>>(mask.scale()));
}

template <class T>
void launch_matrix_dropout(const DropoutTensors<T>& tensors,
                           const DropoutMask& mask,
                           const MatrixGrid& grid,
                           cudaStream_t stream) {
    const dim3 blocks(dropout_blocks(grid), dropout_sample_blocks(tensors.samples));
    drop_matrices<T>
        <<<blocks, dropout_block_threads, 0, stream>>>(tensors.x,
                                                       tensors.out,
                                                       tensors.sample_ids,
                                                       tensors.samples,
                                                       mask,
                                                       grid,
                                                       static_cast<ComputedType<T>>(mask.scale()));
}

template <class T>
void launch_token_dropout(const TokenDropoutTensors<T>& tensors,
                          const DropoutMask& mask,
                          const TokenGrid& grid,
                          cudaStream_t stream) {
    drop_tokens<T><<<dropout_blocks(grid), dropout_block_threads, 0, stream>>>(
        tensors.x,
        tensors.out,
        tensors.sample_ids,
        tensors.positions,
        mask,
        grid,
        static_cast<ComputedType<T>>(mask.scale()));
}

#define HETSEQ_INSTANTIATE(T)                                                            \
    template void launch_dropout(                                                        \
        const DropoutTensors<T>&, const DropoutMask&, const DropoutGrid&, cudaStream_t); \
    template void launch_matrix_dropout(                                                 \
        const DropoutTensors<T>&, const DropoutMask&, const MatrixGrid&, cudaStream_t);  \
    template void launch_token_dropout(                                                  \
        const TokenDropoutTensors<T>&, const DropoutMask&, const TokenGrid&, cudaStream_t);
HETSEQ_INSTANTIATE(float)
HETSEQ_INSTANTIATE(double)
HETSEQ_INSTANTIATE(c10::Half)
HETSEQ_INSTANTIATE(c10::BFloat16)

}  // namespace hetseq::detail
