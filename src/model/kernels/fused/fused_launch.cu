#include "fused_launch.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "attention_softmax.cuh"
#include "bias_activation.cuh"
#include "embedding_sum.cuh"
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
                          const NormParameters<const ComputedType<T>>& parameters,
                          const NormOutputs<T>& out,
                          const TokenPlaces& places,
                          cudaStream_t stream) {
    residual_norm<T, Warp><<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
        x, residual, parameters, out, places);
}

template <class T>
void launch_residual_norm_backward(const NormGradients<T>& given,
                                   const ComputedType<T>* weight,
                                   ComputedType<T>* residual,
                                   T* x,
                                   const TokenPlaces& places,
                                   cudaStream_t stream) {
    residual_norm_backward<T, Warp>
        <<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
            given, weight, residual, x, places);
}

// As many columns in 16 bits as in fp32: twice as many would be too few blocks for narrow rows.
template <class T>
void launch_norm_parameters_backward(const NormGradients<T>& given,
                                     const T* of_x,
                                     const NormParameters<ComputedType<T>>& out,
                                     std::uint32_t rows,
                                     std::uint32_t columns,
                                     cudaStream_t stream) {
    using Team = ColumnsOf<ComputedType<T>>;
    norm_parameters_backward<T, Team><<<column_blocks<Team>(columns), Team::threads, 0, stream>>>(
        given, of_x, out, rows, columns);
}

template <class T>
void launch_bias_activation(const T* product,
                            const ComputedType<T>* bias,
                            T* out,
                            std::uint32_t rows,
                            std::uint32_t columns,
                            Activation activation,
                            cudaStream_t stream) {
    const dim3 blocks(row_blocks<Warp>(rows), activation_blocks(columns));
    bias_activation<T, Warp>
        <<<blocks, row_block_threads, 0, stream>>>(product, bias, out, rows, columns, activation);
}

template <class T>
void launch_bias_activation_backward(const T* kept,
                                     const ComputedType<T>* bias,
                                     const T* gradients,
                                     T* of_product,
                                     ComputedType<T>* of_bias,
                                     std::uint32_t rows,
                                     std::uint32_t columns,
                                     Activation activation,
                                     cudaStream_t stream) {
    using Team = ColumnsOf<T>;
    bias_activation_backward<T, Team><<<column_blocks<Team>(columns), Team::threads, 0, stream>>>(
        kept, bias, gradients, of_product, of_bias, rows, columns, activation);
}

template <class T>
void launch_embedding_sum(const EmbeddingTables<ComputedType<T>>& tables,
                          ComputedType<T>* wide,
                          T* narrow,
                          const TokenPlaces& places,
                          cudaStream_t stream) {
    embedding_sum<T, Warp><<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
        tables, wide, narrow, places);
}

template <class T>
void launch_outputs_backward(const ComputedType<T>* of_wide,
                             const T* of_narrow,
                             ComputedType<T>* out,
                             double scale,
                             const TokenPlaces& places,
                             cudaStream_t stream) {
    outputs_backward<T, Warp><<<row_blocks<Warp>(places.rows), row_block_threads, 0, stream>>>(
        of_wide, of_narrow, out, scale, places);
}

template <class T>
void launch_heads_of_rows(const T* rows,
                          const ComputedType<T>* bias,
                          const HeadParts<T>& heads,
                          const HeadPlaces& at,
                          cudaStream_t stream) {
    const unsigned blocks = head_blocks(at.samples * at.length, at, head_pack(at));
    if (head_pack(at) == 4)
        heads_of_rows<T, 4><<<blocks, head_block_threads, 0, stream>>>(rows, bias, heads, at);
    else
        heads_of_rows<T, 1><<<blocks, head_block_threads, 0, stream>>>(rows, bias, heads, at);
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

template <class T, int pack>
void launch_packed_rows_of_heads_and_sums(const HeadParts<const T>& heads,
                                          T* rows,
                                          ComputedType<T>* sums,
                                          const HeadPlaces& at,
                                          cudaStream_t stream) {
    using Team = ColumnsOf<Pack<T, pack>>;
    rows_of_heads_and_sums<T, pack, Team>
        <<<column_blocks<Team>(head_packs(at, pack)), Team::threads, 0, stream>>>(
            heads, rows, sums, at);
}

template <class T>
void launch_rows_of_heads_and_sums(const HeadParts<const T>& heads,
                                   T* rows,
                                   ComputedType<T>* sums,
                                   const HeadPlaces& at,
                                   cudaStream_t stream) {
    if (head_pack(at) == 4)
        launch_packed_rows_of_heads_and_sums<T, 4>(heads, rows, sums, at, stream);
    else
        launch_packed_rows_of_heads_and_sums<T, 1>(heads, rows, sums, at, stream);
}

HETSEQ_INSTANTIATE_FUSED(float)
HETSEQ_INSTANTIATE_FUSED(double)
HETSEQ_INSTANTIATE_FUSED(c10::Half)
HETSEQ_INSTANTIATE_FUSED(c10::BFloat16)

}  // namespace hetseq::detail
