#include "step_gate_launch.hpp"

#include "step_gate.cuh"

namespace hetseq::detail {

template <class T>
void launch_step_gate(const StepGateInput& input, float* closed, T* factor, cudaStream_t stream) {
    step_gate<T><<<1, 1, 0, stream>>>(input, closed, factor);
}

template void launch_step_gate(const StepGateInput&, float*, float*, cudaStream_t);
template void launch_step_gate(const StepGateInput&, float*, double*, cudaStream_t);

template <class T>
void launch_scale(T* values, std::int64_t count, const T* factor, cudaStream_t stream) {
    scale<T><<<scale_blocks(count), scale_block_threads, 0, stream>>>(values, count, factor);
}

template void launch_scale(float*, std::int64_t, const float*, cudaStream_t);
template void launch_scale(double*, std::int64_t, const double*, cudaStream_t);

}  // namespace hetseq::detail
