#include "hetseq/session/shares.hpp"

#include <algorithm>
#include <string>

#include "hetseq/util/log.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host_comm.hpp"

#include "hetseq/version.hpp"

#include "hetseq/balance/like_ranks.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/loader.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/shares/calibration.hpp"
#include "hetseq/train/shares/step_cost_file.hpp"
#include "hetseq/train/shares/update_cost.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_settings.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t mib = 1 << 20;

// This rank's part of the host's memory [MiB], without the caches that fill while it trains
// (validation's is no larger than training's). It is 0 on other devices, which say when they are
// full.
std::int64_t memory_to_plan_with(const RunSettings& settings, int rank, Replica& replica) {
    if (!settings.device.is_cpu())
        return 0;
    const std::int64_t caches = replica.feed().corpus().cache_bytes() / mib *
                                (settings.options().valid_data.empty() ? 1 : 2);
    return std::max<std::int64_t>(
        1,
        settings.topology.rank(rank).memory_mb - caches / settings.topology.ranks_on_host_of(rank));
}

// The other users of memory while speeds are measured.
std::string memory_users(const RunSettings& settings, Replica& replica) {
    return settings.options().parts.optimizer.name +
           (replica.checkpoints() != nullptr ? ", checkpoints" : ", no checkpoints");
}

// All that this rank's cost depends on.
std::string cost_key(const RunSettings& settings, int rank, Replica& replica) {
    std::vector<std::string> parts{version::number,
                                   version::revision,
                                   settings.topology.rank(rank).device_name,
                                   rank_limits(settings, rank),
                                   settings.options().precision,
                                   settings.options().model,
                                   settings.options().batching,
                                   replica.model().config_json(),
                                   memory_users(settings, replica),
                                   std::to_string(memory_to_plan_with(settings, rank, replica))};
    for (const auto& parameter : replica.parameters().parameters())
        parts.push_back(std::to_string(parameter.numel));
    for (const auto& [field, shape] : replica.feed().corpus().row_shapes()) {
        parts.push_back(field);
        for (const std::int64_t length : shape)
            parts.push_back(std::to_string(length));
    }
    return join(parts, "\n");
}

StepCostCache cache_of(const Options& options) {
    if (options.cache_dir == "none")
        return StepCostCache({});
    return StepCostCache(options.cache_dir.empty() ? default_cache_folder()
                                                   : std::filesystem::path(options.cache_dir));
}

// Collective. Every rank's cost, by rank; like ranks have the same.
std::vector<StepCost> pooled_costs(const HostComm& world,
                                   const RunSettings& settings,
                                   const StepCost& own) {
    std::vector<StepCost> costs;
    for (const std::string& json : world.all_gather(step_cost_json(own)))
        costs.push_back(parse_step_cost(json));
    return pool_like_ranks(costs, like_ranks(settings));
}

// Collective. What this rank does in an update beside forward and backward, and what reductions
// take from those [ms].
double measured_update_ms(const HostComm& world, Replica& replica) {
    const UpdateCost update = agree_on(world, [&] {
        return measure_update(replica.parameters(), [&](FlatParameters& parameters) {
            return replica.make_optimizer(parameters);
        });
    });
    return update.ms + update.ms_per_cpu_ms *
                           measure_reduction_cpu_ms(replica.parameters(), replica.communicator());
}

// Collective. The same, of ranks that are measured where their costs are not known.
std::vector<StepCost> measured_costs(const HostComm& world,
                                     const RunSettings& settings,
                                     Replica& replica) {
    const StepCostCache cache = cache_of(settings.options());
    const std::string key = cost_key(settings, world.rank(), replica);
    const std::optional<StepCost> cost = cache.find(key);
    const std::int64_t unknown = world.all_reduce(std::int64_t{cost ? 0 : 1}, ReduceOp::sum);
    if (unknown > 0) {
        log::info("measuring the speed of " + std::to_string(unknown) + " of " +
                  std::to_string(world.size()) + " ranks");
        StepCost measured =
            calibrate(world,
                      replica.model(),
                      replica.parameters(),
                      replica.feed().loader(),
                      replica.plan(),
                      settings.capacities,
                      cost,
                      {.memory_mb = memory_to_plan_with(settings, world.rank(), replica)});
        const double update_ms = measured_update_ms(world, replica);
        if (!cost)
            measured.update_ms = update_ms;
        const std::int64_t capacity = settings.capacities[static_cast<std::size_t>(world.rank())];
        if (measured.micro_batch < capacity)
            log::warn_here("memory holds micro-batches of " + std::to_string(measured.micro_batch) +
                           " samples, --max-sentences is " + std::to_string(capacity));
        const std::vector<StepCost> costs = pooled_costs(world, settings, measured);
        if (!cost)
            cache.store(key, costs[static_cast<std::size_t>(world.rank())]);
        return costs;
    }
    return pooled_costs(world, settings, *cost);
}

// With the micro-batches that the recorded run had, which its results' roundings depend on.
std::vector<StepCost> recorded_costs(const RunSettings& settings,
                                     const RecordedAllocations& recorded) {
    std::vector<std::int64_t> capacities = settings.capacities;
    for (std::size_t r = 0; r < recorded.micro_batches.size(); ++r)
        capacities[r] = std::min(capacities[r], recorded.micro_batches[r]);
    return declared_costs(capacities);
}

// The allocations that --balance file: repeats; none for another balance. Throws on all ranks.
RecordedAllocations recorded_allocations(const HostComm& world, const RunSettings& settings) {
    if (settings.options().balance != "file")
        return {};
    return agree_on(world, [&] {
        return read_allocations(
            settings.options().plan_file, settings.capacities, settings.batch_size());
    });
}

// `known`: the ranks' costs, by rank; empty: not known.
SharePlan share_plan(const HostComm& world,
                     const RunSettings& settings,
                     const RecordedAllocations& recorded,
                     Replica& replica,
                     const std::vector<StepCost>& known) {
    const std::string& balance = settings.options().balance;
    if (balance == "auto" && std::ssize(known) == world.size())
        return {world, balance, known};
    if (balance == "auto" && world.size() > 1)
        return {world, balance, measured_costs(world, settings, replica)};
    if (balance == "file")
        return {world, balance, recorded_costs(settings, recorded)};
    if (balance == "auto")
        return {world, balance, declared_costs(settings.capacities)};
    return {world, balance, settings.capacities};
}

}  // namespace

Shares make_shares(const HostComm& world,
                   const RunSettings& settings,
                   Replica& replica,
                   const StartingPoint& start) {
    const std::string& balance = settings.options().balance;
    const RecordedAllocations recorded = recorded_allocations(world, settings);
    Shares shares{share_plan(world, settings, recorded, replica, start.costs),
                  balance == "auto" ? start.replay : recorded.by_update};
    const auto holding = holding_at(shares.replay, start.progress.updates);
    if (holding != shares.replay.end())
        shares.plan.change(holding->second);
    return shares;
}

}  // namespace hetseq
