#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "fused_arrays.hpp"

namespace hetseq::detail {

/// Each puts its kernel into `stream`: for float, double, c10::Half and c10::BFloat16. The kernels'
/// own files (*.cuh) say what the arguments are.
template <class T>
void launch_attention_probabilities(const T* scores,
                                    T* dropped,
                                    ComputedType<T>* log_sums,
                                    const ScorePlaces& places,
                                    cudaStream_t stream);
template <class T>
void launch_attention_probabilities_backward(const T* scores,
                                             const ComputedType<T>* log_sums,
                                             const T* gradients,
                                             T* out,
                                             const ScorePlaces& places,
                                             cudaStream_t stream);
template <class T>
void launch_residual_norm(const T* x,
                          const ComputedType<T>* residual,
                          const NormParameters<const ComputedType<T>>& parameters,
                          const NormOutputs<T>& out,
                          const TokenPlaces& places,
                          cudaStream_t stream);
template <class T>
void launch_residual_norm_backward(const NormGradients<T>& given,
                                   const ComputedType<T>* weight,
                                   ComputedType<T>* residual,
                                   T* x,
                                   const TokenPlaces& places,
                                   cudaStream_t stream);
template <class T>
void launch_norm_parameters_backward(const NormGradients<T>& given,
                                     const T* of_x,
                                     const NormParameters<ComputedType<T>>& out,
                                     std::uint32_t rows,
                                     std::uint32_t columns,
                                     cudaStream_t stream);
template <class T>
void launch_bias_activation(const T* product,
                            const ComputedType<T>* bias,
                            T* out,
                            std::uint32_t rows,
                            std::uint32_t columns,
                            Activation activation,
                            cudaStream_t stream);
template <class T>
void launch_bias_activation_backward(const T* kept,
                                     const ComputedType<T>* bias,
                                     const T* gradients,
                                     T* of_product,
                                     ComputedType<T>* of_bias,
                                     std::uint32_t rows,
                                     std::uint32_t columns,
                                     Activation activation,
                                     cudaStream_t stream);
template <class T>
void launch_embedding_sum(const EmbeddingTables<ComputedType<T>>& tables,
                          ComputedType<T>* wide,
                          T* narrow,
                          const TokenPlaces& places,
                          cudaStream_t stream);
template <class T>
void launch_outputs_backward(const ComputedType<T>* of_wide,
                             const T* of_narrow,
                             ComputedType<T>* out,
                             double scale,
                             const TokenPlaces& places,
                             cudaStream_t stream);
template <class T>
void launch_heads_of_rows(const T* rows,
                          const ComputedType<T>* bias,
                          const HeadParts<T>& heads,
                          const HeadPlaces& at,
                          cudaStream_t stream);
template <class T>
void launch_rows_of_heads(const HeadParts<const T>& heads,
                          T* rows,
                          const HeadPlaces& at,
                          cudaStream_t stream);

template <class T>
void launch_rows_of_heads_and_sums(const HeadParts<const T>& heads,
                                   T* rows,
                                   ComputedType<T>* sums,
                                   const HeadPlaces& at,
                                   cudaStream_t stream);

/// Neighbouring elements that a thread can move at once.
inline int head_pack(const HeadPlaces& at) {
    return at.width % 4 == 0 ? 4 : 1;
}
inline unsigned head_blocks(std::uint32_t places, const HeadPlaces& at, int pack) {
    const std::uint32_t threads = places * (at.columns() / static_cast<std::uint32_t>(pack));
    return (threads + head_block_threads - 1) / head_block_threads;
}

/// Packs of all parts of a row.
inline std::uint32_t head_packs(const HeadPlaces& at, int pack) {
    return static_cast<std::uint32_t>(at.parts) * at.columns() / static_cast<std::uint32_t>(pack);
}

/// Blocks of `bias_activation` side by side in a row.
inline unsigned activation_blocks(std::uint32_t columns) {
    return (columns + activation_columns - 1) / activation_columns;
}

/// What a source that defines these functions ends with.
#define HETSEQ_INSTANTIATE_FUSED(T)                                                              \
    template void launch_attention_probabilities(                                                \
        const T*, T*, ComputedType<T>*, const ScorePlaces&, cudaStream_t);                       \
    template void launch_attention_probabilities_backward(                                       \
        const T*, const ComputedType<T>*, const T*, T*, const ScorePlaces&, cudaStream_t);       \
    template void launch_residual_norm(const T*,                                                 \
                                       const ComputedType<T>*,                                   \
                                       const NormParameters<const ComputedType<T>>&,             \
                                       const NormOutputs<T>&,                                    \
                                       const TokenPlaces&,                                       \
                                       cudaStream_t);                                            \
    template void launch_residual_norm_backward(const NormGradients<T>&,                         \
                                                const ComputedType<T>*,                          \
                                                ComputedType<T>*,                                \
                                                T*,                                              \
                                                const TokenPlaces&,                              \
                                                cudaStream_t);                                   \
    template void launch_norm_parameters_backward(const NormGradients<T>&,                       \
                                                  const T*,                                      \
                                                  const NormParameters<ComputedType<T>>&,        \
                                                  std::uint32_t,                                 \
                                                  std::uint32_t,                                 \
                                                  cudaStream_t);                                 \
    template void launch_bias_activation(const T*,                                               \
                                         const ComputedType<T>*,                                 \
                                         T*,                                                     \
                                         std::uint32_t,                                          \
                                         std::uint32_t,                                          \
                                         Activation,                                             \
                                         cudaStream_t);                                          \
    template void launch_bias_activation_backward(const T*,                                      \
                                                  const ComputedType<T>*,                        \
                                                  const T*,                                      \
                                                  T*,                                            \
                                                  ComputedType<T>*,                              \
                                                  std::uint32_t,                                 \
                                                  std::uint32_t,                                 \
                                                  Activation,                                    \
                                                  cudaStream_t);                                 \
    template void launch_embedding_sum(const EmbeddingTables<ComputedType<T>>&,                  \
                                       ComputedType<T>*,                                         \
                                       T*,                                                       \
                                       const TokenPlaces&,                                       \
                                       cudaStream_t);                                            \
    template void launch_outputs_backward(const ComputedType<T>*,                                \
                                          const T*,                                              \
                                          ComputedType<T>*,                                      \
                                          double,                                                \
                                          const TokenPlaces&,                                    \
                                          cudaStream_t);                                         \
    template void launch_heads_of_rows(                                                          \
        const T*, const ComputedType<T>*, const HeadParts<T>&, const HeadPlaces&, cudaStream_t); \
    template void launch_rows_of_heads(                                                          \
        const HeadParts<const T>&, T*, const HeadPlaces&, cudaStream_t);                         \
    template void launch_rows_of_heads_and_sums(                                                 \
        const HeadParts<const T>&, T*, ComputedType<T>*, const HeadPlaces&, cudaStream_t);

}  // namespace hetseq::detail
