#include "worker_cuts.hpp"

#include <algorithm>
#include <tuple>

#include "cut_times.hpp"
#include "near_cuts.hpp"
#include "stage_costs.hpp"

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

const WorkerCut& WorkerCuts::fastest(const WorkerKind& kind, std::int64_t units) {
    units = std::max<std::int64_t>(1, units);
    for (std::size_t size = 0; size < problem_.sizes.size(); ++size) {
        given(kind, size, searched(kind, size, units));
        given(kind, size, searched(kind, size, 1));
        add_single_stages(kind, size);
    }
    const WorkerCut* best = nullptr;
    for (const auto& [key, cut] : known_[kind])
        if (!best || is_better(*cut, *best, units))
            best = cut;
    return *best;
}

const std::vector<ChainStage>& WorkerCuts::searched(const WorkerKind& kind,
                                                    std::size_t size,
                                                    std::int64_t units) {
    WorkerKind searchable = kind;
    searchable.devices = searchable_devices(kind.devices, problem_.units());
    const std::size_t micro_batches =
        rounded_micro_batches(units, problem_.sizes[size].micro_batch);
    const auto [at, is_new] = searched_.try_emplace({searchable, size, micro_batches});
    if (is_new) {
        WorkerChain chain = worker_chain(problem_, state_, size, searchable);
        chain.problem.micro_batches = micro_batches;
        at->second = chain.in_layout(partition_chain(chain.problem).stages);
    }
    return at->second;
}

// They share the fewest sums of gradients.
void WorkerCuts::add_single_stages(const WorkerKind& kind, std::size_t size) {
    for (std::size_t c = 0; c < kind.devices.size(); ++c) {
        const ChainStage stage{c, 0, problem_.units()};
        if (kind.devices[c] > 0)
            given(kind, size, {&stage, 1});
    }
}

const WorkerCut& WorkerCuts::given(const WorkerKind& kind,
                                   std::size_t size,
                                   std::span<const ChainStage> stages) {
    const Key key{size, {stages.begin(), stages.end()}};
    WorkerKind links = kind;
    std::fill(links.devices.begin(), links.devices.end(), 0);
    const auto [at, is_new] = cuts_[links].try_emplace(key);
    if (is_new) {
        const PipelineCut cut =
            fastest_in_flight(stage_costs(problem_, state_, size, kind, stages), 1);
        at->second = {size,
                      key.second,
                      cut.memory[cut.tightest()].overshoot_mb(),
                      cut_times(problem_, state_, size, kind, stages)};
    }
    known_[kind].emplace(key, &at->second);
    return at->second;
}

std::vector<const WorkerCut*> WorkerCuts::known(const WorkerKind& kind) const {
    std::vector<const WorkerCut*> cuts;
    if (const auto at = known_.find(kind); at != known_.end())
        for (const auto& [key, cut] : at->second)
            cuts.push_back(cut);
    return cuts;
}

void WorkerCuts::add_near(
    const WorkerKind& kind,
    const WorkerCut& cut,
    const std::function<bool(std::size_t size, std::span<const ChainStage> stages)>& is_worth_it) {
    std::vector<std::vector<ChainStage>> cuts = near_cuts(cut.stages, kind.devices);
    cuts.push_back(cut.stages);
    for (std::size_t size = 0; size < problem_.sizes.size(); ++size)
        for (const std::vector<ChainStage>& stages : cuts)
            if (is_worth_it(size, stages))
                given(kind, size, stages);
}

PipelineCut WorkerCuts::evaluated(const WorkerKind& kind,
                                  const WorkerCut& cut,
                                  std::int64_t units) const {
    return fastest_in_flight(stage_costs(problem_, state_, cut.size, kind, cut.stages),
                             rounded_micro_batches(units, problem_.sizes[cut.size].micro_batch));
}

}  // namespace hetseq
