#include "hetseq/session/step_counts.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "hetseq/util/error.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/gradient_reducer.hpp"
#include "hetseq/train/update_step.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/run_settings.hpp"

#include "operator_counter.hpp"

namespace hetseq {

namespace {

OperatorWork touching(std::string name, const std::vector<at::Tensor>& tensors) {
    OperatorWork work{.name = std::move(name)};
    for (const at::Tensor& tensor : tensors)
        work.tensor_bytes.push_back(static_cast<std::int64_t>(tensor.nbytes()));
    return work;
}

// Any optimizer reads the gradients, and reads and writes the parameters and its state.
std::vector<OperatorWork> update_of(Replica& replica) {
    const at::Tensor gradients = replica.parameters().gradients();
    std::vector<at::Tensor> touched{
        gradients, replica.parameters().values(), replica.parameters().values()};
    for (const auto& [name, state] : replica.optimizer().state())
        touched.insert(touched.end(), 2, state);
    return {touching("gradient norm", {gradients}), touching("optimizer", touched)};
}

class PassCounter {
public:
    PassCounter(const RunSettings& settings, Replica& replica)
        : settings_{settings},
          replica_{replica},
          reducer_{replica.parameters(),
                   replica.communicator(),
                   std::numeric_limits<std::int64_t>::max()},
          step_{replica.pass(), replica.parameters(), reducer_} {}

    // Computes the share twice: what is done once in a process does not count.
    StepCounts::Pass count(const GlobalBatch& batch, const MicroBatchCap& cap) {
        const Slice all{batch.items ? 0 : batch.begin, batch.end};
        replica_.feed().loader().request(batch, {&all, 1}, cap);
        LoadedShare share = replica_.feed().loader().take();
        const ForwardContext context{Mode::train, settings_.options().seed, 0};
        step_.run(share, share.weights(), context);
        const OperatorCounter counter;
        step_.run(share, share.weights(), context);
        return {.samples = share.samples(),
                .units = share.units(),
                .micro_batches = std::ssize(share.micro_batches()),
                .numbers_read = counter.numbers_read(),
                .operators = counter.operators()};
    }

private:
    const RunSettings& settings_;
    Replica& replica_;
    GradientReducer reducer_;
    UpdateStep step_;
};

}  // namespace

Precision computed_on_cpu(Precision of_gpu) {
    if (of_gpu == Precision::fp16)
        return Precision::bf16;
    return of_gpu == Precision::tf32 ? Precision::fp32 : of_gpu;
}

void count_as(Precision of_gpu, StepCounts& counts) {
    const bool is_narrow = of_gpu == Precision::bf16 || of_gpu == Precision::fp16;
    for (StepCounts::Pass& pass : counts.passes) {
        if (is_narrow)  // a GPU converts all weights at once, and rows as they are made
            std::erase_if(pass.operators,
                          [](const OperatorWork& work) { return work.name == "aten::_to_copy"; });
        for (OperatorWork& work : pass.operators)
            if (work.precision == computed_on_cpu(of_gpu))
                work.precision = of_gpu;
    }
}

StepCounts count_step(const RunSettings& settings, Replica& replica) {
    HETSEQ_ASSERT(settings.capacities.size() == 1);
    PassCounter counter{settings, replica};
    StepCounts counts{.passes = {}, .update = update_of(replica)};
    const std::int64_t capacity = settings.capacities.front();
    if (settings.is_ragged()) {
        const std::int64_t samples =
            settings.max_samples.empty() ? MicroBatchCap::none : settings.max_samples.front();
        counts.passes.push_back(counter.count(replica.plan().batch(0), {samples, capacity}));
        return counts;
    }
    const std::int64_t full = std::min(capacity, replica.plan().samples());
    for (const std::int64_t size : {full / 2, full})
        if (size > 0)
            counts.passes.push_back(counter.count({.end = size}, {}));
    return counts;
}

StepCost roofline_cost(const StepCounts& counts, const GpuPeaks& gpu) {
    const StepCounts::Pass& full = counts.passes.back();
    const double full_ms = roofline(full.operators, gpu).ms();
    StepCost cost{.unit_ms = full_ms / static_cast<double>(full.units),
                  .micro_batch = std::max<std::int64_t>(full.units / full.micro_batches, 1),
                  .update_ms = roofline(counts.update, gpu).ms()};
    if (counts.passes.size() < 2)
        return cost;
    const StepCounts::Pass& half = counts.passes.front();
    const double half_ms = roofline(half.operators, gpu).ms();
    // A line that fell would be noise, but counts have none: kernels are the same or fewer.
    const double slope =
        std::max(full_ms - half_ms, 0.0) / static_cast<double>(full.units - half.units);
    cost.micro_batch_ms = std::max(full_ms - slope * static_cast<double>(full.units), 0.0);
    cost.unit_ms = (full_ms - cost.micro_batch_ms) / static_cast<double>(full.units);
    return cost;
}

}  // namespace hetseq
