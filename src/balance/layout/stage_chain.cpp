#include "stage_chain.hpp"

#include <algorithm>

#include "hetseq/util/error.hpp"

namespace hetseq {

namespace {

double sum(const std::vector<double>& values, const ChainStage& stage) {
    double sum = 0;
    for (std::size_t unit = stage.begin; unit < stage.end; ++unit)
        sum += values[unit];
    return sum;
}

double largest(const std::vector<double>& values, const ChainStage& stage) {
    double most = 0;
    for (std::size_t unit = stage.begin; unit < stage.end; ++unit)
        most = std::max(most, values[unit]);
    return most;
}

}  // namespace

StageChain::StageChain(const LayoutProblem& problem,
                       const StateTable& state,
                       std::size_t size,
                       const WorkerKind& kind,
                       std::span<const ChainStage> stages)
    : problem_{problem.sizes[size].chain} {
    std::size_t end = 0;
    for (const ChainStage& stage : stages) {
        HETSEQ_ASSERT(stage.begin == end && stage.end > stage.begin);
        end = stage.end;
    }
    HETSEQ_ASSERT(end == problem.units());
    add_units(problem.sizes[size].chain, stages);
    add_devices(problem.sizes[size].chain, kind, stages);
    problem_.state_mb = [&state, size, own = std::vector(stages.begin(), stages.end())](
                            std::size_t begin, std::size_t behind, std::size_t place) {
        return state.mb(size, {own[place].device_class, own[begin].begin, own[behind - 1].end});
    };
}

void StageChain::add_units(const ChainProblem& all, std::span<const ChainStage> stages) {
    for (std::vector<double>* const mb : {&problem_.activations_mb,
                                          &problem_.gradients_mb,
                                          &problem_.activations_mb_kept,
                                          &problem_.workspace_mb})
        mb->clear();
    problem_.tied.clear();  // summed with the gradients of all workers
    for (const ChainStage& stage : stages) {
        problem_.activations_mb.push_back(all.activations_mb[stage.end - 1]);
        problem_.gradients_mb.push_back(all.gradients_mb[stage.end - 1]);
        problem_.activations_mb_kept.push_back(sum(all.activations_mb_kept, stage));
        problem_.workspace_mb.push_back(largest(all.workspace_mb, stage));
    }
}

// A class for each stage, of one device.
void StageChain::add_devices(const ChainProblem& all,
                             const WorkerKind& kind,
                             std::span<const ChainStage> stages) {
    problem_.devices.clear();
    problem_.links.clear();
    for (const ChainStage& stage : stages) {
        ChainDevices devices = all.devices[stage.device_class];
        const std::vector<double> forward_ms = devices.forward_ms;
        const std::vector<double> backward_ms = devices.backward_ms;
        devices.count = 1;
        devices.forward_ms.clear();
        devices.backward_ms.clear();
        auto& links = problem_.links.emplace_back();
        for (const ChainStage& other : stages) {
            devices.forward_ms.push_back(sum(forward_ms, other));
            devices.backward_ms.push_back(sum(backward_ms, other));
            links.push_back(kind.link(all, stage.device_class, other.device_class));
        }
        problem_.devices.push_back(devices);
        cut_.push_back({cut_.size(), cut_.size(), cut_.size() + 1});
    }
}

PipelineCut StageChain::evaluated(std::size_t micro_batches) {
    problem_.micro_batches = micro_batches;
    return with_more_in_flight(problem_, evaluate_cut(problem_, cut_));
}

}  // namespace hetseq
