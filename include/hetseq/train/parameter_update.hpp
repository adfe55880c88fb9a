#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "hetseq/optim/step_gate.hpp"
#include "hetseq/train/compute_timer.hpp"

namespace hetseq {

class FlatParameters;
class Optimizer;

/// The last stage of an update: clips the summed gradients and steps the optimizer. On a GPU it may
/// be asked of the device before the host knows the verdict; then a gate on the device decides.
class ParameterUpdate {
public:
    /// Whether the device may be asked so early.
    enum class Ahead { where_possible, never };

    /// Both must outlive it. `clip_norm`: of the gradients' 2-norm; 0: no clipping.
    ParameterUpdate(FlatParameters& parameters,
                    Optimizer& optimizer,
                    double clip_norm,
                    Ahead ahead = Ahead::where_possible);

    ~ParameterUpdate();
    ParameterUpdate(const ParameterUpdate&) = delete;
    ParameterUpdate& operator=(const ParameterUpdate&) = delete;

    /// Null on a CPU, where the host knows the verdict when the device does, where the state is cut
    /// over ranks, and for an optimizer that cannot be gated.
    StepGate* gate() noexcept { return gate_ ? &*gate_ : nullptr; }

    /// Steps if the gate, which was set before, is open. An update that is repeated comes here
    /// again: it found the gate closed. Throws DeviceError where the optimizer runs out of memory.
    void step_behind_gate(double lr);
    /// The update is to be applied: steps, unless that is done. The gradients hold `scale` times
    /// those whose norm is `norm`, finite. Throws as above.
    void apply(double lr, double norm, double scale = 1);
    /// The update is not to be applied: what stepped behind the gate does not count.
    void leave_out();

    /// The time of the last step that was applied [ms], once; none: it was told, or there is none.
    /// It waits for the device to finish that step.
    std::optional<double> take_ms();

private:
    void step(double lr);

    FlatParameters& parameters_;
    Optimizer& optimizer_;
    double clip_norm_;
    std::optional<StepGate> gate_;
    std::array<ComputeTimer, 2> timers_;  // of this step, and of the one before
    std::size_t timer_ = 0;               // which is this step's
    bool is_timed_ = false;               // the step before, which was not told yet
    bool has_stepped_ = false;            // behind the gate
};

}  // namespace hetseq
