#include "hetseq/train/parameter_update.hpp"

#include <exception>
#include <utility>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/util/process/profiler_range.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"

#include "out_of_memory.hpp"

namespace hetseq {

namespace {

// Where the state is cut over ranks, a step takes all of them, which must know the verdict alike.
std::optional<StepGate> gate_of(const FlatParameters& parameters,
                                Optimizer& optimizer,
                                double clip_norm,
                                ParameterUpdate::Ahead ahead) {
    const at::Tensor gradients = parameters.gradients();
    if (ahead == ParameterUpdate::Ahead::never || gradients.is_cpu() ||
        !parameters.state_ranges().empty())
        return std::nullopt;
    StepGate gate{gradients.options(), clip_norm};
    return optimizer.use_gate(gate.closed()) ? std::optional{gate} : std::nullopt;
}

}  // namespace

ParameterUpdate::ParameterUpdate(FlatParameters& parameters,
                                 Optimizer& optimizer,
                                 double clip_norm,
                                 Ahead ahead)
    : parameters_{parameters},
      optimizer_{optimizer},
      clip_norm_{clip_norm},
      gate_{gate_of(parameters, optimizer, clip_norm, ahead)},
      timers_{ComputeTimer{parameters.values().device()},
              ComputeTimer{parameters.values().device()}} {}

ParameterUpdate::~ParameterUpdate() {
    if (gate_)
        optimizer_.use_gate({});
}

void ParameterUpdate::step_behind_gate(double lr) {
    leave_out();
    has_stepped_ = true;
    const ProfilerRange range{"step behind the gate"};
    gate_->prepare(parameters_.gradients());
    step(lr);
}

void ParameterUpdate::apply(double lr, double norm, double scale) {
    if (!std::exchange(has_stepped_, false)) {
        const bool clips = clip_norm_ > 0 && norm > clip_norm_;
        if (clips || scale != 1)
            parameters_.gradients().mul_((clips ? clip_norm_ / norm : 1) / scale);
        step(lr);
    }
    timer_ = 1 - timer_;
    is_timed_ = true;
}

void ParameterUpdate::leave_out() {
    if (std::exchange(has_stepped_, false))
        optimizer_.take_back();
}

std::optional<double> ParameterUpdate::take_ms() {
    return std::exchange(is_timed_, false) ? std::optional{timers_[1 - timer_].ms()} : std::nullopt;
}

// Allocates nothing for hetseq, so memory that was enough for the gradient is enough here.
void ParameterUpdate::step(double lr) {
    timers_[timer_].begin();
    try {
        optimizer_.step(parameters_, lr);
    } catch (const std::exception& error) {
        if (!is_out_of_memory(error))
            throw;
        throw DeviceError(
            "out of memory in the optimizer, whose update is half done",
            reason_of(error),
            "continue from the last checkpoint with a lower --max-sentences on this rank");
    }
    timers_[timer_].end();
}

}  // namespace hetseq
