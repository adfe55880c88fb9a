#include "best_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "hetseq/util/error.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/pipeline/partition_chain.hpp"
#include "hetseq/balance/usable_memory.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

// All ranks' costs of one size, rank after rank, unit after unit.
constexpr std::size_t numbers_a_unit = 5;
std::vector<UnitCost> unpacked(const std::vector<double>& numbers,
                               std::size_t first,
                               std::size_t units) {
    std::vector<UnitCost> costs;
    for (std::size_t u = 0; u < units; ++u) {
        const double* const own = numbers.data() + first + u * numbers_a_unit;
        costs.push_back({own[0], own[1], own[2], own[3], own[4]});
    }
    return costs;
}

std::vector<std::vector<UnitCost>> gathered(const HostComm& world,
                                            const std::vector<UnitCost>& own) {
    const auto ranks = static_cast<std::size_t>(world.size());
    const std::size_t each = own.size() * numbers_a_unit;
    std::vector<double> numbers(ranks * each, 0);
    double* out = numbers.data() + static_cast<std::size_t>(world.rank()) * each;
    for (const UnitCost& cost : own)
        for (const double number :
             {cost.forward_ms, cost.backward_ms, cost.kept_mb, cost.workspace_mb, cost.output_mb})
            *out++ = number;
    world.all_reduce(std::span<double>(numbers), ReduceOp::sum);
    std::vector<std::vector<UnitCost>> all;
    for (std::size_t r = 0; r < ranks; ++r)
        all.push_back(unpacked(numbers, r * each, own.size()));
    return all;
}

std::vector<std::size_t> units_of(const PipelineCut& cut) {
    std::vector<std::size_t> units;
    for (const ChainStage& stage : cut.stages)
        units.push_back(stage.end - stage.begin);
    return units;
}

// The ranks of the stages: those of a class in their order.
std::vector<int> ranks_of(const PipelineCut& cut, const RankClasses& classes) {
    std::vector<std::size_t> used(classes.ranks.size(), 0);
    std::vector<int> ranks;
    for (const ChainStage& stage : cut.stages)
        ranks.push_back(classes.ranks[stage.device_class][used[stage.device_class]++]);
    return ranks;
}

std::vector<double> activations_of(const PipelineCut& cut,
                                   const MeasuredRanks& measured,
                                   const std::vector<int>& ranks) {
    std::vector<double> mb;
    for (std::size_t s = 0; s < cut.stages.size(); ++s)
        mb.push_back(std::max(
            0.0,
            cut.memory[s].needed_mb - measured.memory.process_mb(ranks[s]) -
                measured.memory.stage_mb(ranks[s], {cut.stages[s].begin, cut.stages[s].end})));
    return mb;
}

[[noreturn]] void refuse(const PipelineCut& nearest,
                         const MeasuredRanks& measured,
                         const RunSettings& settings) {
    const std::size_t s = nearest.tightest();
    const RankInfo& info = settings.topology.rank(ranks_of(nearest, measured.classes)[s]);
    const auto whole = [](double mb) { return std::to_string(std::llround(mb)); };
    throw BadConfig("no cut of the model fits the virtual worker's memory: of the nearest, stage " +
                        std::to_string(s) + " of " + std::to_string(nearest.stages.size()) +
                        " would need " + whole(nearest.memory[s].needed_mb / usable_memory) +
                        " MiB of rank " + std::to_string(info.rank) + " on " + info.host,
                    "it has " + whole(nearest.memory[s].usable_mb / usable_memory) + " MiB",
                    "add ranks to the worker, give --recompute all, or use a smaller model");
}

WorkerLayout best_of(const std::vector<MeasuredSize>& sizes,
                       const CostsBySize& costs,
                       const MeasuredRanks& measured,
                       const RunSettings& settings) {
    std::optional<WorkerLayout> best;
    std::optional<PipelineCut> nearest;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const ChainProblem problem = chain_problem(measured, costs[i], sizes[i].micro_batches);
        const PipelineCut cut = with_more_in_flight(problem, partition_chain(problem));
        if (!cut.fits()) {
            nearest = cut;
            continue;
        }
        if (best && best->predicted_ms <= cut.predicted_ms)
            continue;
        const std::vector<int> ranks = ranks_of(cut, measured.classes);
        best = given_worker(ranks, units_of(cut), sizes[i].micro_batch, cut.extra_in_flight);
        best->predicted_ms = cut.predicted_ms;
        best->bubble = cut.bubble;
        best->activations_mb = activations_of(cut, measured, ranks);
    }
    if (!best)
        refuse(*nearest, measured, settings);
    return *best;
}

// Collective. Rank 0's.
WorkerLayout shared(const HostComm& world, const WorkerLayout& layout) {
    std::vector<double> numbers{static_cast<double>(layout.micro_batch),
                                static_cast<double>(layout.extra_in_flight),
                                layout.predicted_ms,
                                layout.bubble};
    for (std::size_t s = 0; s < layout.ranks.size(); ++s)
        for (const double number : {static_cast<double>(layout.ranks[s]),
                                    static_cast<double>(layout.cut.units[s].size()),
                                    layout.activations_mb[s]})
            numbers.push_back(number);
    numbers.resize(static_cast<std::size_t>(world.broadcast(std::ssize(numbers), 0)));
    world.broadcast(std::as_writable_bytes(std::span(numbers)), 0);
    std::vector<int> ranks;
    std::vector<std::size_t> units;
    std::vector<double> activations_mb;
    for (std::size_t at = 4; at < numbers.size(); at += 3) {
        ranks.push_back(static_cast<int>(numbers[at]));
        units.push_back(static_cast<std::size_t>(numbers[at + 1]));
        activations_mb.push_back(numbers[at + 2]);
    }
    WorkerLayout all = given_worker(std::move(ranks),
                                    units,
                                    static_cast<std::int64_t>(numbers[0]),
                                    static_cast<std::size_t>(numbers[1]));
    all.predicted_ms = numbers[2];
    all.bubble = numbers[3];
    all.activations_mb = std::move(activations_mb);
    return all;
}

}  // namespace

CostsBySize gathered_costs(const HostComm& world, const std::vector<MeasuredSize>& sizes) {
    CostsBySize costs;
    for (const MeasuredSize& size : sizes)
        costs.push_back(gathered(world, size.costs));
    return costs;
}

PipelineLayout best_layout(const HostComm& world,
                           const RunSettings& settings,
                           const std::vector<MeasuredSize>& sizes,
                           const CostsBySize& costs,
                           const MeasuredRanks& ranks) {
    return {.workers = {shared(world, agree_on(world, [&] {
                                   return world.rank() == 0
                                              ? best_of(sizes, costs, ranks, settings)
                                              : WorkerLayout{};
                               }))}};
}

}  // namespace hetseq
