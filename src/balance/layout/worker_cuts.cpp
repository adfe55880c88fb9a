#include "worker_cuts.hpp"

#include <algorithm>
#include <tuple>

#include "cut_times.hpp"
#include "near_cuts.hpp"

namespace hetseq {

bool is_better(const WorkerCut& a, const WorkerCut& b, std::int64_t units) {
    const auto key = [units](const WorkerCut& cut) {
        return std::tuple(
            std::max(0.0, cut.overshoot_mb), cut.cost.time_ms(units), cut.size, cut.stages.size());
    };
    return key(a) < key(b);
}

WorkerCuts::WorkerCuts(const LayoutProblem& problem, std::size_t sharded_over)
    : problem_{problem}, state_{problem, sharded_over} {}

const WorkerCut& WorkerCuts::fastest(const Devices& devices, std::int64_t units) {
    const Devices searchable = searchable_devices(devices, problem_.units());
    Known& known = known_[searchable];
    units = std::max<std::int64_t>(1, units);
    for (std::size_t size = 0; size < problem_.sizes.size(); ++size) {
        search(searchable, size, units, known);
        search(searchable, size, 1, known);
        add_single_stages(searchable, size);
    }
    const WorkerCut* best = &known.cuts.begin()->second;
    for (const auto& [key, cut] : known.cuts)
        if (is_better(cut, *best, units))
            best = &cut;
    return *best;
}

void WorkerCuts::search(const Devices& devices,
                        std::size_t size,
                        std::int64_t units,
                        Known& known) {
    const std::size_t micro_batches =
        rounded_micro_batches(units, problem_.sizes[size].micro_batch);
    if (!known.searched.emplace(size, micro_batches).second)
        return;
    WorkerChain chain = worker_chain(problem_, state_, size, devices);
    chain.problem.micro_batches = micro_batches;
    const std::vector<ChainStage> stages = chain.in_layout(partition_chain(chain.problem).stages);
    given(devices, size, stages);
}

// They share the fewest sums of gradients.
void WorkerCuts::add_single_stages(const Devices& devices, std::size_t size) {
    for (std::size_t c = 0; c < devices.size(); ++c) {
        const ChainStage stage{c, 0, problem_.units()};
        if (devices[c] > 0)
            given(devices, size, {&stage, 1});
    }
}

const WorkerCut& WorkerCuts::given(const Devices& devices,
                                   std::size_t size,
                                   std::span<const ChainStage> stages) {
    auto& cuts = known_[searchable_devices(devices, problem_.units())].cuts;
    const auto [at, is_new] = cuts.try_emplace({size, {stages.begin(), stages.end()}});
    if (is_new) {
        WorkerChain chain = worker_chain(problem_, state_, size, devices);
        const PipelineCut cut = evaluate_cut(chain.problem, chain.in_worker(stages));
        at->second = {size,
                      {stages.begin(), stages.end()},
                      cut.memory[cut.tightest()].overshoot_mb(),
                      cut_times(problem_, state_, devices, size, stages)};
    }
    return at->second;
}

std::vector<const WorkerCut*> WorkerCuts::known(const Devices& devices) const {
    std::vector<const WorkerCut*> cuts;
    const auto at = known_.find(searchable_devices(devices, problem_.units()));
    if (at != known_.end())
        for (const auto& [key, cut] : at->second.cuts)
            cuts.push_back(&cut);
    return cuts;
}

void WorkerCuts::add_near(const Devices& devices, const WorkerCut& cut) {
    std::vector<std::vector<ChainStage>> cuts = near_cuts(cut.stages, devices);
    cuts.push_back(cut.stages);
    for (std::size_t size = 0; size < problem_.sizes.size(); ++size)
        for (const std::vector<ChainStage>& stages : cuts)
            given(devices, size, stages);
}

PipelineCut WorkerCuts::evaluated(const Devices& devices,
                                  const WorkerCut& cut,
                                  std::int64_t units) const {
    WorkerChain chain = worker_chain(problem_, state_, cut.size, devices);
    return cut_in_flight(
        chain, cut.stages, rounded_micro_batches(units, problem_.sizes[cut.size].micro_batch));
}

}  // namespace hetseq
