// The kernels of hetseq, run by the emulator in the order of a stream: for want of what nvcc makes
// of them.
#include <algorithm>
#include <type_traits>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "../cuda/stand_in_cuda.hpp"
#include "../simt/simt.hpp"
#include "model/kernels/counter_dropout.cuh"
#include "model/kernels/counter_dropout_launch.hpp"
#include "model/kernels/fused/attention_softmax.cuh"
#include "model/kernels/fused/fused_launch.hpp"
#include "model/kernels/fused/head_rows.cuh"
#include "model/kernels/fused/residual_norm.cuh"
#include "optim/kernels/adadelta.cuh"
#include "optim/kernels/adadelta_launch.hpp"
#include "optim/kernels/step_gate.cuh"
#include "optim/kernels/step_gate_launch.hpp"
#include "optim/kernels/sum_of_squares.cuh"
#include "optim/kernels/sum_of_squares_launch.hpp"

namespace hetseq::detail {

using stand_in::Use;

namespace {

template <class T>
Use reads(const T* begin, std::int64_t count) {
    return stand_in::reads(begin, static_cast<std::size_t>(count));
}
template <class T>
Use writes(const T* begin, std::int64_t count) {
    return stand_in::writes(begin, static_cast<std::size_t>(count));
}

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

std::vector<Use> norm_uses(const NormPlaces& places) {
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
void launch_dropout(const DropoutTensors<T>& tensors,
                    const DropoutMask& mask,
                    const DropoutGrid& grid,
                    cudaStream_t stream) {
    const std::int64_t elements =
        tensors.samples * static_cast<std::int64_t>(grid.rows) * grid.columns;
    const std::vector<Use> uses{reads(tensors.x, elements),
                                reads(tensors.sample_ids, tensors.samples),
                                writes(tensors.out, elements)};
    stand_in::launch(stream, "dropout", uses, [=] {
        simt::launch_independent({dropout_blocks(grid), dropout_sample_blocks(tensors.samples)},
                                 {dropout_block_threads},
                                 [&] {
                                     drop(tensors.x,
                                          tensors.out,
                                          tensors.sample_ids,
                                          tensors.samples,
                                          mask,
                                          grid,
                                          static_cast<T>(mask.scale()));
                                 });
    });
}

template <class T>
void launch_matrix_dropout(const DropoutTensors<T>& tensors,
                           const DropoutMask& mask,
                           const MatrixGrid& grid,
                           cudaStream_t stream) {
    const DropoutMatrices& places = grid.matrices;
    const std::int64_t elements =
        tensors.samples * static_cast<std::int64_t>(places.matrices) * places.rows * places.columns;
    const std::vector<Use> uses{reads(tensors.x, elements),
                                reads(tensors.sample_ids, tensors.samples),
                                writes(tensors.out, elements)};
    stand_in::launch(stream, "matrix dropout", uses, [=] {
        simt::launch_independent({dropout_blocks(grid), dropout_sample_blocks(tensors.samples)},
                                 {dropout_block_threads},
                                 [&] {
                                     drop_matrices(tensors.x,
                                                   tensors.out,
                                                   tensors.sample_ids,
                                                   tensors.samples,
                                                   mask,
                                                   grid,
                                                   static_cast<T>(mask.scale()));
                                 });
    });
}

template <class T>
void launch_token_dropout(const TokenDropoutTensors<T>& tensors,
                          const DropoutMask& mask,
                          const TokenGrid& grid,
                          cudaStream_t stream) {
    const std::int64_t elements = static_cast<std::int64_t>(grid.rows) * grid.columns;
    const std::vector<Use> uses{reads(tensors.x, elements),
                                reads(tensors.sample_ids, std::int64_t{grid.rows}),
                                reads(tensors.positions, std::int64_t{grid.rows}),
                                writes(tensors.out, elements)};
    stand_in::launch(stream, "token dropout", uses, [=] {
        simt::launch_independent({dropout_blocks(grid)}, {dropout_block_threads}, [&] {
            drop_tokens(tensors.x,
                        tensors.out,
                        tensors.sample_ids,
                        tensors.positions,
                        mask,
                        grid,
                        static_cast<T>(mask.scale()));
        });
    });
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

// A thread works alone on a row: fibers take too long. tests/model/fused_kernels_test.cpp
// runs whole warps.
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
                          const ComputedType<T>* weight,
                          const ComputedType<T>* bias,
                          const NormOutputs<T>& out,
                          const NormPlaces& places,
                          cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = norm_uses(places);
    uses.insert(uses.end(),
                {reads(x, elements),
                 reads(residual, elements),
                 reads(weight, places.columns),
                 reads(bias, places.columns),
                 writes(out.sums, elements),
                 writes(out.means, places.rows),
                 writes(out.inverse_deviations, places.rows),
                 writes(out.wide, elements)});
    if (out.narrow != nullptr)
        uses.push_back(writes(out.narrow, elements));
    stand_in::launch(stream, "residual norm", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            residual_norm<T, Single>(x, residual, weight, bias, out, places);
        });
    });
}

template <class T>
void launch_residual_norm_backward(const NormGradients<T>& given,
                                   const ComputedType<T>* weight,
                                   ComputedType<T>* residual,
                                   T* x,
                                   const NormPlaces& places,
                                   cudaStream_t stream) {
    const std::int64_t elements = std::int64_t{places.rows} * places.columns;
    std::vector<Use> uses = norm_uses(places);
    const std::vector<Use> of_gradients = gradient_uses(given, places.rows, places.columns);
    uses.insert(uses.end(), of_gradients.begin(), of_gradients.end());
    uses.insert(uses.end(),
                {reads(weight, places.columns), writes(residual, elements), writes(x, elements)});
    stand_in::launch(stream, "residual norm backward", uses, [=] {
        simt::launch_independent({row_blocks<Single>(places.rows)}, {row_block_threads}, [&] {
            residual_norm_backward<T, Single>(given, weight, residual, x, places);
        });
    });
}

template <class T>
void launch_norm_parameters_backward(const NormGradients<T>& given,
                                     ComputedType<T>* parts,
                                     std::int64_t rows,
                                     std::uint32_t columns,
                                     cudaStream_t stream) {
    const auto strips = static_cast<unsigned>(norm_strips(rows));
    std::vector<Use> uses = gradient_uses(given, rows, columns);
    uses.push_back(writes(parts, std::int64_t{strips} * 2 * columns));
    stand_in::launch(stream, "norm parameters backward", uses, [=] {
        simt::launch_independent({(columns + row_block_threads - 1) / row_block_threads, strips},
                                 {row_block_threads},
                                 [&] { norm_parameters_backward(given, parts, rows, columns); });
    });
}

template <class T>
void launch_heads_of_rows(const T* rows,
                          const HeadParts<T>& heads,
                          const HeadPlaces& at,
                          cudaStream_t stream) {
    std::vector<Use> uses = head_uses(heads, at);
    uses.push_back(reads(rows, std::int64_t{at.rows} * at.parts * at.columns()));
    stand_in::launch(stream, "heads of rows", uses, [=] {
        const int pack = head_pack(at);
        simt::launch_independent(
            {head_blocks(at.samples * at.length, at, pack)}, {head_block_threads}, [&] {
                pack == 4 ? heads_of_rows<T, 4>(rows, heads, at)
                          : heads_of_rows<T, 1>(rows, heads, at);
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

HETSEQ_INSTANTIATE_FUSED(float)
HETSEQ_INSTANTIATE_FUSED(double)
HETSEQ_INSTANTIATE_FUSED(c10::Half)
HETSEQ_INSTANTIATE_FUSED(c10::BFloat16)

template <class T>
void launch_adadelta(const AdadeltaArrays<T>& arrays,
                     const AdadeltaStep& step,
                     cudaStream_t stream) {
    std::vector<Use> uses{reads(arrays.gradients, arrays.count),
                          writes(arrays.values, arrays.count),
                          writes(arrays.square_avg, arrays.count),
                          writes(arrays.acc_delta, arrays.count)};
    if (arrays.closed != nullptr)
        uses.push_back(reads(arrays.closed, 1));
    stand_in::launch(stream, "adadelta", uses, [=] {
        simt::launch_independent({adadelta_blocks(arrays.count)}, {adadelta_block_threads}, [&] {
            adadelta(arrays.values,
                     arrays.gradients,
                     arrays.square_avg,
                     arrays.acc_delta,
                     arrays.count,
                     arrays.closed,
                     AdadeltaFactors<T>(step));
        });
    });
}

template void launch_adadelta(const AdadeltaArrays<float>&, const AdadeltaStep&, cudaStream_t);
template void launch_adadelta(const AdadeltaArrays<double>&, const AdadeltaStep&, cudaStream_t);

template <class T>
void launch_step_gate(const StepGateInput& input, float* closed, T* factor, cudaStream_t stream) {
    const std::vector<Use> uses{reads(input.status, input.count),
                                reads(input.norm, 1),
                                writes(closed, 1),
                                writes(factor, 1)};
    stand_in::launch(stream, "step gate", uses, [=] {
        simt::launch_independent({1}, {1}, [&] { step_gate(input, closed, factor); });
    });
}

template void launch_step_gate(const StepGateInput&, float*, float*, cudaStream_t);
template void launch_step_gate(const StepGateInput&, float*, double*, cudaStream_t);

template <class T>
void launch_scale(T* values, std::int64_t count, const T* factor, cudaStream_t stream) {
    const std::vector<Use> uses{reads(factor, 1), writes(values, count)};
    stand_in::launch(stream, "scale", uses, [=] {
        simt::launch_independent(
            {scale_blocks(count)}, {scale_block_threads}, [&] { scale(values, count, factor); });
    });
}

template void launch_scale(float*, std::int64_t, const float*, cudaStream_t);
template void launch_scale(double*, std::int64_t, const double*, cudaStream_t);

unsigned sums_of_squares(std::int64_t count) {
    return square_blocks(count);
}

// Fibers take a second for a million elements: of so many the sums are made by a loop, and the
// tests of the kernel itself are tests/optim/optimizer_kernels_test.cpp. The thread sanitizer loses
// its way among fibers.
#ifdef __SANITIZE_THREAD__
constexpr std::int64_t most_emulated = 0;
#else
constexpr std::int64_t most_emulated = 4096;
#endif

template <class T>
void sum_by_loop(const T* x, std::int64_t count, double* sums) {
    std::fill_n(sums, square_blocks(count), 0.0);
    for (std::int64_t i = 0; i < count; ++i)
        sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
}

template <class T>
void launch_sum_of_squares(const T* x, std::int64_t count, double* sums, cudaStream_t stream) {
    const std::vector<Use> uses{reads(x, count), writes(sums, square_blocks(count))};
    stand_in::launch(stream, "sum of squares", uses, [=] {
        if (count > most_emulated)
            sum_by_loop(x, count, sums);
        else
            simt::launch({square_blocks(count)}, {square_block_threads}, [=] {
                sum_of_squares(x, count, sums);
            });
    });
}

template void launch_sum_of_squares(const float*, std::int64_t, double*, cudaStream_t);
template void launch_sum_of_squares(const double*, std::int64_t, double*, cudaStream_t);
template void launch_sum_of_squares(const c10::Half*, std::int64_t, double*, cudaStream_t);
template void launch_sum_of_squares(const c10::BFloat16*, std::int64_t, double*, cudaStream_t);

}  // namespace hetseq::detail
