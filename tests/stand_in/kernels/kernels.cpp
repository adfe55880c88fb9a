// The kernels of hetseq, run by the emulator in the order of a stream: for want of what nvcc makes
// of them.
#include <algorithm>
#include <vector>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "../simt/simt.hpp"
#include "model/kernels/counter_dropout.cuh"
#include "model/kernels/counter_dropout_launch.hpp"
#include "optim/kernels/adadelta.cuh"
#include "optim/kernels/adadelta_launch.hpp"
#include "optim/kernels/step_gate.cuh"
#include "optim/kernels/step_gate_launch.hpp"
#include "optim/kernels/sum_of_squares.cuh"
#include "optim/kernels/sum_of_squares_launch.hpp"
#include "uses.hpp"

namespace hetseq::detail {

using stand_in::Use;

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
                                          static_cast<ComputedType<T>>(mask.scale()));
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
                                                   static_cast<ComputedType<T>>(mask.scale()));
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
                        static_cast<ComputedType<T>>(mask.scale()));
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
