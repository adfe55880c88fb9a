#include "fused_launch.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "attention_softmax.cuh"
#include "head_rows.cuh"
#include "residual_norm.cuh"

namespace hetseq::detail {

template <class T>
void launch_attention_probabilities(const T* scores,
                                    T* dropped,
                                    ComputedType<T>* log_sums,
                                    const ScorePlaces& places,
                                    cudaStream_t stream) {
    attention_probabilities<T, Warp>
        <<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
            scores, dropped, log_sums, places);
}

template <class T>
void launch_attention_probabilities_backward(const T* scores,
                                             const ComputedType<T>* log_sums,
                                             const T* gradients,
                                             T* out,
                                             const ScorePlaces& places,
                                             cudaStream_t stream) {
    attention_probabilities_backward<T, Warp>
        <<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
            scores, log_sums, gradients, out, places);
}

template <class T>
void launch_residual_norm(const T* x,
                          const ComputedType<T>* residual,
                          const ComputedType<T>* weight,
                          const ComputedType<T>* bias,
                          const NormOutputs<T>& out,
                          const NormPlaces& places,
                          cudaStream_t stream) {
    residual_norm<T, Warp><<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
        x, residual, weight, bias, out, places);
}

template <class T>
void launch_residual_norm_backward(const NormGradients<T>& given,
                                   const ComputedType<T>* weight,
                                   ComputedType<T>* residual,
                                   T* x,
                                   const NormPlaces& places,
                                   cudaStream_t stream) {
    residual_norm_backward<T, Warp>
        <<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
            given, weight, residual, x, places);
}

template <class T>
void launch_norm_parameters_backward(const NormGradients<T>& given,
                                     ComputedType<T>* parts,
                                     std::int64_t rows,
                                     std::uint32_t columns,
                                     cudaStream_t stream) {
    const dim3 blocks((columns + row_block_threads - 1) / row_block_threads,
                      static_cast<unsigned>(norm_strips(rows)));
    norm_parameters_backward<T>
        <<<blocks, row_block_threads, 0, stream>>>(given, parts, rows, columns);
}

template <class T>
void launch_heads_of_rows(const T* rows,
                          const HeadParts<T>& heads,
                          const HeadPlaces& at,
                          cudaStream_t stream) {
    const unsigned blocks = head_blocks(at.samples * at.length, at, head_pack(at));
    if (head_pack(at) == 4)
        heads_of_rows<T, 4><<<blocks, head_block_threads, 0, stream>>>(rows, heads, at);
    else
        heads_of_rows<T, 1><<<blocks, head_block_threads, 0, stream>>>(rows, heads, at);
}

template <class T>
void launch_rows_of_heads(const HeadParts<const T>& heads,
                          T* rows,
                          const HeadPlaces& at,
                          cudaStream_t stream) {
    const unsigned blocks = head_blocks(at.rows, at, head_pack(at));
    if (head_pack(at) == 4)
        rows_of_heads<T, 4><<<blocks, head_block_threads, 0, stream>>>(heads, rows, at);
    else
        rows_of_heads<T, 1><<<blocks, head_block_threads, 0, stream>>>(heads, rows, at);
}

HETSEQ_INSTANTIATE_FUSED(float)
HETSEQ_INSTANTIATE_FUSED(double)
HETSEQ_INSTANTIATE_FUSED(c10::Half)
HETSEQ_INSTANTIATE_FUSED(c10::BFloat16)

}  // namespace hetseq::detail
