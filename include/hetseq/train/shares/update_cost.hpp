#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <c10/core/ScalarType.h>

namespace hetseq {

class Communicator;
class FlatParameters;
class Optimizer;

/// What a rank on a CPU does once an update whatever its share. 0 for a GPU, which does that while
/// the host goes on.
struct UpdateCost {
    double ms = 0;
    double ms_per_cpu_ms = 0;  // more than 1 where a CPU quota pauses the rank
};

/// The gradients' norm and the optimizer's step: the mean over as long as a CPU quota's pauses need
/// to even out. Measured with an optimizer that `make` makes for parameters of its own, at most 16
/// MiB of them, so that what is trained stays as it is; longer ones take proportionally longer.
UpdateCost measure_update(const FlatParameters& parameters,
                          const std::function<std::unique_ptr<Optimizer>(FlatParameters&)>& make);

/// Collective. The processor time that summing the gradients takes this rank [ms], by that of at
/// most 4 MiB. It is what reductions that overlap with backward take from it; waiting is not in it.
/// 0 for a GPU.
/// `sent`: the type in which gradients are sent, as in `GradientReducer`.
double measure_reduction_cpu_ms(const FlatParameters& parameters,
                                Communicator& communicator,
                                std::optional<at::ScalarType> sent);

/// Collective. The time from the start of summing the gradients to its end [ms], by that of at most
/// 16 MiB of them; the median of several.
double measure_reduction_ms(const FlatParameters& parameters,
                            Communicator& communicator,
                            std::optional<at::ScalarType> sent);

}  // namespace hetseq
