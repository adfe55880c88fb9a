// The kernels of Transformers, run by the emulator in the order of a stream. A thread works alone
// on a row or a column: fibers take too long. tests/model/*kernel*_test.cpp run whole warps.
#include <type_traits>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "../simt/simt.hpp"
#include "model/kernels/fused/attention_softmax.cuh"
#include "model/kernels/fused/bias_activation.cuh"
#include "model/kernels/fused/embedding_sum.cuh"
#include "model/kernels/fused/fused_launch.hpp"
#include "model/kernels/fused/head_rows.cuh"
#include "model/kernels/fused/residual_norm.cuh"
#include "uses.hpp"

namespace hetseq::detail {

using stand_in::Use;

namespace {

template <class T>
std::vector<Use> score_uses(const T* scores, const ScorePlaces& places) {
    std::vector<Use> uses{reads(scores, std::int64_t{places.rows} * places.columns)};
    const std::int64_t samples = places.rows / (places.heads * places.queries);
    if (places.keys != nullptr)
        uses.push_back(reads(places.keys, samples * places.columns));
    if (places.sample_ids != nullptr)
        uses.push_back(reads(places.sample_ids, samples));
    return uses;
}

std::vector<Use> token_uses(const TokenPlaces& places) {
    std::vector<Use> uses;
    if (places.sample_ids != nullptr)
        uses.push_back(reads(places.sample_ids, places.rows / places.rows_of_sample));
    if (places.positions != nullptr)
        uses.push_back(reads(places.positions, places.rows));
    return uses;
}

template <class T>
std::vector<Use> gradient_uses(const NormGradients<T>& given,
                               std::int64_t rows,
                               std::int64_t columns) {
    std::vector<Use> uses{reads(given.sums, rows * columns),
                          reads(given.means, rows),
                          reads(given.inverse_deviations, rows)};
    if (given.wide != nullptr)
        uses.push_back(reads(given.wide, rows * columns));
    if (given.narrow != nullptr)
        uses.push_back(reads(given.narrow, rows * columns));
    return uses;
}

template <class P>
std::vector<Use> head_uses(const HeadParts<P>& heads, const HeadPlaces& at) {
    std::vector<Use> uses;
    const std::int64_t elements = std::int64_t{at.samples} * at.length * at.columns();
    for (int part = 0; part < at.parts; ++part)
        if (heads.of[part] != nullptr)
            uses.push_back(std::is_const_v<P> ? reads(heads.of[part], elements)
                                              : writes(heads.of[part], elements));
    if (at.places != nullptr)
        uses.push_back(reads(at.places, at.rows));
    if (at.row_of != nullptr)
        uses.push_back(reads(at.row_of, std::int64_t{at.samples} * at.length));
    return uses;
}

}  // namespace

template <class T>
void launch_attention_probabilities(const T* scores,
                                    T* dropped,
                                    ComputedType<T>* log_sums,
                                    const ScorePlaces& places,
                                    cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = score_uses(scores, places);
    uses.push_back(writes(dropped, elements));
    uses.push_back(writes(log_sums, places.rows));
    stand_in::launch(stream, "attention probabilities", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            attention_probabilities<T, Single>(scores, dropped, log_sums, places);
        });
    });
}

template <class T>
void launch_attention_probabilities_backward(const T* scores,
                                             const ComputedType<T>* log_sums,
                                             const T* gradients,
                                             T* out,
                                             const ScorePlaces& places,
                                             cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = score_uses(scores, places);
    uses.push_back(reads(log_sums, places.rows));
    uses.push_back(reads(gradients, elements));
    uses.push_back(writes(out, elements));
    stand_in::launch(stream, "attention probabilities backward", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            attention_probabilities_backward<T, Single>(scores, log_sums, gradients, out, places);
        });
    });
}

template <class T>
void launch_residual_norm(const T* x,
                          const ComputedType<T>* residual,
                          const NormParameters<const ComputedType<T>>& parameters,
                          const NormOutputs<T>& out,
                          const TokenPlaces& places,
                          cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = token_uses(places);
    uses.insert(uses.end(),
                {reads(parameters.weight, places.columns),
                 reads(parameters.bias, places.columns),
                 writes(out.sums, elements),
                 writes(out.means, places.rows),
                 writes(out.inverse_deviations, places.rows),
                 writes(out.wide, elements)});
    if (x != nullptr)
        uses.push_back(reads(x, elements));
    if (residual != nullptr)
        uses.push_back(reads(residual, elements));
    if (parameters.x_bias != nullptr)
        uses.push_back(reads(parameters.x_bias, places.columns));
    if (out.narrow != nullptr)
        uses.push_back(writes(out.narrow, elements));
    stand_in::launch(stream, "residual norm", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            residual_norm<T, Single>(x, residual, parameters, out, places);
        });
    });
}

template <class T>
void launch_residual_norm_backward(const NormGradients<T>& given,
                                   const ComputedType<T>* weight,
                                   ComputedType<T>* residual,
                                   T* x,
                                   const TokenPlaces& places,
                                   cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = token_uses(places);
    const std::vector<Use> of_gradients = gradient_uses(given, places.rows, places.columns);
    uses.insert(uses.end(), of_gradients.begin(), of_gradients.end());
    uses.push_back(reads(weight, places.columns));
    if (x != nullptr)
        uses.push_back(writes(x, elements));
    if (residual != nullptr)
        uses.push_back(writes(residual, elements));
    stand_in::launch(stream, "residual norm backward", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            residual_norm_backward<T, Single>(given, weight, residual, x, places);
        });
    });
}

template <class T>
void launch_norm_parameters_backward(const NormGradients<T>& given,
                                     const T* of_x,
                                     const NormParameters<ComputedType<T>>& out,
                                     std::uint32_t rows,
                                     std::uint32_t columns,
                                     cudaStream_t stream) {
    std::vector<Use> uses = gradient_uses(given, rows, columns);
    uses.insert(uses.end(), {writes(out.weight, columns), writes(out.bias, columns)});
    if (out.x_bias != nullptr)
        uses.insert(uses.end(),
                    {reads(of_x, std::int64_t{rows} * columns), writes(out.x_bias, columns)});
    stand_in::launch(stream, "norm parameters backward", uses, [=] {
        simt::launch_independent(
            {column_blocks<SingleColumn>(columns)}, {SingleColumn::threads}, [&] {
                norm_parameters_backward<T, SingleColumn>(given, of_x, out, rows, columns);
            });
    });
}

template <class T>
void launch_bias_activation(const T* product,
                            const ComputedType<T>* bias,
                            T* out,
                            std::uint32_t rows,
                            std::uint32_t columns,
                            Activation activation,
                            cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{rows} * columns;
    const std::vector<Use> uses{
        reads(product, elements), reads(bias, columns), writes(out, elements)};
    stand_in::launch(stream, "bias activation", uses, [=] {
        simt::launch_independent(
            {row_blocks<Single>(rows), activation_blocks(columns)}, {row_block_threads}, [&] {
                bias_activation<T, Single>(product, bias, out, rows, columns, activation);
            });
    });
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
    const std::int64_t elements = std::int64_t{rows} * columns;
    const std::vector<Use> uses{reads(kept, elements),
                                reads(bias, columns),
                                reads(gradients, elements),
                                writes(of_product, elements),
                                writes(of_bias, columns)};
    stand_in::launch(stream, "bias activation backward", uses, [=] {
        simt::launch_independent(
            {column_blocks<SingleColumn>(columns)}, {SingleColumn::threads}, [&] {
                bias_activation_backward<T, SingleColumn>(
                    kept, bias, gradients, of_product, of_bias, rows, columns, activation);
            });
    });
}

// Of the tables all that a row can name is unknown here: their beginnings stand for them.
template <class T>
void launch_embedding_sum(const EmbeddingTables<ComputedType<T>>& tables,
                          ComputedType<T>* wide,
                          T* narrow,
                          const TokenPlaces& places,
                          cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = token_uses(places);
    uses.insert(uses.end(),
                {reads(tables.words, places.columns),
                 reads(tables.ids, places.rows),
                 reads(tables.positions, places.columns),
                 writes(wide, elements)});
    if (tables.position_ids != nullptr)
        uses.push_back(reads(tables.position_ids, places.rows));
    if (tables.segments != nullptr)
        uses.insert(
            uses.end(),
            {reads(tables.segments, places.columns), reads(tables.segment_ids, places.rows)});
    if (narrow != nullptr)
        uses.push_back(writes(narrow, elements));
    stand_in::launch(stream, "embedding sum", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            embedding_sum<T, Single>(tables, wide, narrow, places);
        });
    });
}

template <class T>
void launch_outputs_backward(const ComputedType<T>* of_wide,
                             const T* of_narrow,
                             ComputedType<T>* out,
                             double scale,
                             const TokenPlaces& places,
                             cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = token_uses(places);
    uses.push_back(writes(out, elements));
    if (of_wide != nullptr)
        uses.push_back(reads(of_wide, elements));
    if (of_narrow != nullptr)
        uses.push_back(reads(of_narrow, elements));
    stand_in::launch(stream, "outputs backward", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            outputs_backward<T, Single>(of_wide, of_narrow, out, scale, places);
        });
    });
}

template <class T>
void launch_heads_of_rows(const T* rows,
                          const ComputedType<T>* bias,
                          const HeadParts<T>& heads,
                          const HeadPlaces& at,
                          cudaStream_t stream) {
    std::vector<Use> uses = head_uses(heads, at);
    uses.push_back(reads(rows, std::int64_t{at.rows} * at.parts * at.columns()));
    if (bias != nullptr)
        uses.push_back(reads(bias, std::int64_t{at.parts} * at.columns()));
    stand_in::launch(stream, "heads of rows", uses, [=] {
        const int pack = head_pack(at);
        simt::launch_independent(
            {head_blocks(at.samples * at.length, at, pack)}, {head_block_threads}, [&] {
                pack == 4 ? heads_of_rows<T, 4>(rows, bias, heads, at)
                          : heads_of_rows<T, 1>(rows, bias, heads, at);
            });
    });
}

template <class T>
void launch_rows_of_heads(const HeadParts<const T>& heads,
                          T* rows,
                          const HeadPlaces& at,
                          cudaStream_t stream) {
    std::vector<Use> uses = head_uses(heads, at);
    uses.push_back(writes(rows, std::int64_t{at.rows} * at.parts * at.columns()));
    stand_in::launch(stream, "rows of heads", uses, [=] {
        const int pack = head_pack(at);
        simt::launch_independent({head_blocks(at.rows, at, pack)}, {head_block_threads}, [&] {
            pack == 4 ? rows_of_heads<T, 4>(heads, rows, at) : rows_of_heads<T, 1>(heads, rows, at);
        });
    });
}

template <class T>
void launch_rows_of_heads_and_sums(const HeadParts<const T>& heads,
                                   T* rows,
                                   ComputedType<T>* sums,
                                   const HeadPlaces& at,
                                   cudaStream_t stream) {
    std::vector<Use> uses = head_uses(heads, at);
    const std::int64_t columns = std::int64_t{at.parts} * at.columns();
    uses.insert(uses.end(), {writes(rows, at.rows * columns), writes(sums, columns)});
    stand_in::launch(stream, "rows of heads", uses, [=] {
        using Team = SingleColumn;
        const int pack = head_pack(at);
        simt::launch_independent({column_blocks<Team>(head_packs(at, pack))}, {Team::threads}, [&] {
            pack == 4 ? rows_of_heads_and_sums<T, 4, Team>(heads, rows, sums, at)
                      : rows_of_heads_and_sums<T, 1, Team>(heads, rows, sums, at);
        });
    });
}

HETSEQ_INSTANTIATE_FUSED(float)
HETSEQ_INSTANTIATE_FUSED(double)
HETSEQ_INSTANTIATE_FUSED(c10::Half)
HETSEQ_INSTANTIATE_FUSED(c10::BFloat16)

}  // namespace hetseq::detail
