#pragma once

#include <functional>
#include <vector>

#include "hetseq/model/model.hpp"

namespace hetseq {

/// What a device takes for a unit of a chain and one micro-batch, and what goes on from it.
struct UnitCost {
    double forward_ms = 0;
    double backward_ms = 0;   // with what is computed again
    double kept_mb = 0;       // from forward to backward: the outputs among it
    double workspace_mb = 0;  // beside that, at the most
    double output_mb = 0;  // that the next unit gets; its gradient is as large, where one is sent
    double filled = 1;     // part of the gradients, of parameters that other units read too, which
                           // is not zero after it, as `sent_part` counts
};

/// A CPU quota makes a rank's threads stand still for a while, again and again.
enum class Pauses { unlikely, likely };

/// Measures the units of a model's chain on a micro-batch, in this rank's arithmetic, one at a
/// time: no more of the model has memory. Units of one kind are taken to cost the same. With
/// pauses it takes longer. `prepare` gives values, and a device, to the parameters of the unit that
/// is held; afterwards the model holds none. Costs by unit. Throws what computing throws.
std::vector<UnitCost> measure_units(Model& model,
                                    const MicroBatch& batch,
                                    Pauses pauses,
                                    const std::function<void()>& prepare);

/// What lies between, or beyond, the costs of micro-batches of `small` and `large` samples or
/// tokens: on the line through both. What is filled grows by a power of the size, as the distinct
/// words of a text do (Heaps' law), and is at most 1.
UnitCost cost_between(
    const UnitCost& of_small, double small, const UnitCost& of_large, double large, double size);

}  // namespace hetseq
