#include "layout_problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/allocate.hpp"
#include "hetseq/balance/median.hpp"
#include "hetseq/balance/step_cost.hpp"
#include "hetseq/session/run_settings.hpp"

#include "sum_costs.hpp"

namespace hetseq {

namespace {

// All ranks' costs of one size, rank after rank, unit after unit.
constexpr std::size_t numbers_a_unit = 6;
std::vector<UnitCost> unpacked(const std::vector<double>& numbers,
                               std::size_t first,
                               std::size_t units) {
    std::vector<UnitCost> costs;
    for (std::size_t u = 0; u < units; ++u) {
        const double* const own = numbers.data() + first + u * numbers_a_unit;
        costs.push_back({own[0], own[1], own[2], own[3], own[4], own[5]});
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
        for (const double number : {cost.forward_ms,
                                    cost.backward_ms,
                                    cost.kept_mb,
                                    cost.workspace_mb,
                                    cost.output_mb,
                                    cost.filled})
            *out++ = number;
    world.all_reduce(std::span<double>(numbers), ReduceOp::sum);
    std::vector<std::vector<UnitCost>> all;
    for (std::size_t r = 0; r < ranks; ++r)
        all.push_back(unpacked(numbers, r * each, own.size()));
    return all;
}

std::vector<std::size_t> classes_by_rank(const RankClasses& classes, std::size_t ranks) {
    std::vector<std::size_t> class_of(ranks, 0);
    for (std::size_t c = 0; c < classes.ranks.size(); ++c)
        for (const int rank : classes.ranks[c])
            class_of[static_cast<std::size_t>(rank)] = c;
    return class_of;
}

std::vector<int> hosts_by_rank(const RunSettings& settings) {
    std::map<std::string, int> numbers;
    std::vector<int> host_of;
    for (const RankInfo& info : settings.topology.ranks)
        host_of.push_back(
            numbers.emplace(info.host, static_cast<int>(numbers.size())).first->second);
    return host_of;
}

using Sharers = std::span<const LayoutProblem::Sharer>;

// What each computes at once. Replicas have what they declare.
std::vector<std::int64_t> micro_batches_of(const RunSettings& settings,
                                           const std::vector<std::int64_t>& by_size,
                                           Sharers workers) {
    const bool are_replicas =
        std::ranges::all_of(workers, [](const auto& worker) { return worker.ranks.size() == 1; });
    std::vector<std::int64_t> units;
    for (const LayoutProblem::Sharer& worker : workers)
        units.push_back(are_replicas
                            ? settings.capacities[static_cast<std::size_t>(worker.ranks.front())]
                            : by_size[worker.size]);
    return units;
}

// As --balance gives them; empty: times decide. Those of a recorded run are of another layout.
std::function<std::vector<std::int64_t>(Sharers)> given_shares(
    const RunSettings& settings, const std::vector<MeasuredSize>& sizes) {
    const std::string& balance = settings.options().balance.policy;
    if (balance != "equal" && balance != "declared")
        return {};
    const auto costs_of = balance == "equal" ? equal_costs : declared_costs;
    std::vector<std::int64_t> by_size;
    for (const MeasuredSize& size : sizes)
        by_size.push_back(size.micro_batch);
    return [&settings, by_size, costs_of, batch = sizes.front().batch](Sharers workers) {
        return allocate(costs_of(micro_batches_of(settings, by_size, workers)), batch);
    };
}

}  // namespace

CostsBySize gathered_costs(const HostComm& world, const std::vector<MeasuredSize>& sizes) {
    CostsBySize costs;
    for (const MeasuredSize& size : sizes)
        costs.push_back(gathered(world, size.costs));
    return costs;
}

LayoutProblem layout_problem(const RunSettings& settings,
                             const std::vector<MeasuredSize>& sizes,
                             const CostsBySize& costs,
                             const MeasuredRanks& ranks) {
    LayoutProblem problem;
    problem.batch = sizes.front().batch;
    problem.is_late = settings.options().trainer.staleness > 0;
    problem.given_shares = given_shares(settings, sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i)
        problem.sizes.push_back({filled(sizes[i], problem.batch, settings.is_ragged()),
                                 chain_problem(ranks, costs[i], sizes[i].micro_batches)});
    problem.class_of = classes_by_rank(ranks.classes, settings.topology.ranks.size());
    problem.host_of = hosts_by_rank(settings);
    problem.link = [&ranks](int from, int to) {
        const LinkCost& cost =
            ranks.links[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
        return ChainLink{cost.latency_ms, cost.ms_per_mb};
    };
    problem.all_reduce_ms = [&](std::span<const int> among, double mb) {
        return ranks.sums_factor * sum_ms_by_links(settings, ranks.links, among, mb);
    };
    const double of_values =
        sent_type(settings)
            ? 2.0 / static_cast<double>(c10::elementSize(parameter_type(settings.precision)))
            : 1;
    problem.gradients_mb = [&ranks, of_values](std::size_t begin, std::size_t end) {
        return of_values * ranks.memory.values_mb({begin, end});
    };
    problem.optimizer_ms = [&](std::size_t begin, std::size_t end, std::size_t device_class) {
        std::vector<double> ms;
        for (const int rank : ranks.classes.ranks[device_class])
            ms.push_back(ranks.optimizer_ms_per_mb[static_cast<std::size_t>(rank)]);
        return median(ms) * ranks.memory.values_mb({begin, end});
    };
    if (ranks.memory.can_cut_state())
        problem.sharded_state_mb = [&](std::size_t device_class, std::size_t over) {
            return ranks.memory.sharded_mb(ranks.classes.ranks[device_class].front(), over);
        };
    return problem;
}

}  // namespace hetseq
