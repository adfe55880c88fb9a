#include "stage_costs.hpp"

#include <algorithm>
#include <vector>

#include "balance/pipeline/message_times.hpp"

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

// The links between the devices that a cut's stages are on.
class StageLinks {
public:
    StageLinks(const ChainProblem& chain,
               const WorkerKind& kind,
               std::span<const ChainStage> stages)
        : chain_{chain}, kind_{kind}, used_(chain.devices.size(), 0) {
        for (const ChainStage& stage : stages)
            ++used_[stage.device_class];
    }

    PipelineLink between(const ChainStage& front, const ChainStage& behind) const {
        const std::size_t unit = front.end - 1, a = front.device_class, b = behind.device_class;
        const double mb = chain_.gradients_mb[unit];
        return {message_ms(kind_.link(chain_, a, b), chain_.activations_mb[unit]),
                mb > 0 ? message_ms(kind_.link(chain_, b, a), mb) : 0,
                mb > 0,
                card_part_of(way(a, b), fastest_of(a)),
                card_part_of(way(a, b), fastest_of(b))};
    }

private:
    double way(std::size_t a, std::size_t b) const {
        return slower_way(kind_.link(chain_, a, b), kind_.link(chain_, b, a));
    }
    double fastest_of(std::size_t own) const {
        return fastest_way(
            chain_.devices, used_, own, [&](std::size_t a, std::size_t b) { return way(a, b); });
    }

    const ChainProblem& chain_;
    const WorkerKind& kind_;
    std::vector<std::size_t> used_;  // by class
};

}  // namespace

CutCosts stage_costs(const LayoutProblem& problem,
                     const StateTable& state,
                     std::size_t size,
                     const WorkerKind& kind,
                     std::span<const ChainStage> stages) {
    check_stages(stages, problem.units());
    const ChainProblem& chain = problem.sizes[size].chain;
    const StageLinks links{chain, kind, stages};
    CutCosts costs;
    for (const ChainStage& stage : stages) {
        const ChainDevices& devices = chain.devices[stage.device_class];
        const bool is_first = stage.begin == 0, is_last = stage.end == problem.units();
        const double received_mb = is_first ? 0 : chain.activations_mb[stage.begin - 1];
        const double sent_mb = is_last ? 0 : chain.activations_mb[stage.end - 1];
        costs.stages.push_back(
            {rounded_ms(sum(devices.forward_ms, stage)) + forward_messages_ms(chain, stage),
             rounded_ms(sum(devices.backward_ms, stage)) + backward_messages_ms(chain, stage),
             devices.process_mb + state.mb(size, stage) + sent_mb +
                 largest(chain.workspace_mb, stage),
             sum(chain.activations_mb_kept, stage) + received_mb,
             devices.memory_mb,
             devices.host});
        if (!is_last)
            costs.links.push_back(links.between(stage, stages[costs.stages.size()]));
    }
    return costs;
}

PipelineCut fastest_in_flight(const CutCosts& costs, std::size_t micro_batches) {
    return with_more_in_flight(costs, micro_batches, evaluate(costs, micro_batches, 0));
}

}  // namespace hetseq
