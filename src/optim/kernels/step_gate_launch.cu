#include "step_gate_launch.hpp"

#include "step_gate.cuh"

namespace hetseq::detail {

template <class T>
void launch_step_gate(const StepGateInput& input,
                      float* closed,
                      T* clip_factor,
                      cudaStream_t stream) {
    step_gate<T><<<1, 1, 0, stream>>>(input, closed, clip_factor);
}

template void launch_step_gate(const StepGateInput&, float*, float*, cudaStream_t);
template void launch_step_gate(const StepGateInput&, float*, double*, cudaStream_t);

}  // namespace hetseq::detail
