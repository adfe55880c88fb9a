#pragma once

#include <functional>
#include <memory>

namespace hetseq {

class FlatParameters;
class Optimizer;

/// What a rank on a CPU does once an update whatever its share, the gradients' norm and the
/// optimizer's step [ms]: the mean over as long as a CPU quota's pauses need to even out. Measured
/// with an optimizer that `make` makes for parameters of its own, at most 16 MiB of them, so that
/// what is trained stays as it is; longer ones take proportionally longer. 0 for a GPU, which does
/// that while the host goes on.
double measure_update_ms(const FlatParameters& parameters,
                         const std::function<std::unique_ptr<Optimizer>(FlatParameters&)>& make);

}  // namespace hetseq
