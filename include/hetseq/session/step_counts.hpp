#pragma once

#include <cstdint>
#include <vector>

#include "hetseq/balance/step_cost.hpp"
#include "hetseq/plan/roofline.hpp"

namespace hetseq {

class Replica;
struct RunSettings;

/// What the operators of an update do, counted while a CPU computed it once.
struct StepCounts {
    /// Forward and backward of the micro-batches of one share.
    struct Pass {
        std::int64_t samples = 0;
        std::int64_t units = 0;
        std::int64_t micro_batches = 0;
        std::int64_t numbers_read = 0;  // by the host, from tensors that a GPU would have to finish
        std::vector<OperatorWork> operators = {};
    };
    /// Rows of one shape: a micro-batch of half the size, if it has more than one sample, then a
    /// full one. Samples of unequal length: the first batch.
    std::vector<Pass> passes;
    /// The gradients' norm and the optimizer, each as one kernel that goes once through what it
    /// reads and writes.
    std::vector<OperatorWork> update;
};

/// What a CPU computes in, so that its operators have the shapes and bytes that a GPU's have in
/// `of_gpu`.
Precision computed_on_cpu(Precision of_gpu);
/// The operators that were counted in `computed_on_cpu(of_gpu)` are `of_gpu`'s. In 16 bits
/// conversions don't count.
void count_as(Precision of_gpu, StepCounts& counts);

/// On one rank alone, with a CPU. Computes gradients and leaves the parameters as they are. Throws
/// what reading and computing throw.
StepCounts count_step(const RunSettings& settings, Replica& replica);

/// The least time that updates can take on `gpu`, as the cost of a rank: of `counts.passes` the
/// line through the two, or the time of a unit of the only one.
StepCost roofline_cost(const StepCounts& counts, const GpuPeaks& gpu);

}  // namespace hetseq
