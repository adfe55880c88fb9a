#include "hetseq/session/starting_shares.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "hetseq/util/log.hpp"
#include "hetseq/util/quantity.hpp"
#include "hetseq/util/text.hpp"
#include "hetseq/comm/agree.hpp"
#include "hetseq/comm/host/device_memory.hpp"
#include "hetseq/comm/host_comm.hpp"
#include "hetseq/balance/like_ranks.hpp"
#include "hetseq/data/corpus.hpp"
#include "hetseq/data/loading/loader.hpp"
#include "hetseq/state/step_cost_file.hpp"
#include "hetseq/model/model.hpp"
#include "hetseq/optim/flat_parameters.hpp"
#include "hetseq/optim/optimizer.hpp"
#include "hetseq/train/shares/calibration.hpp"
#include "hetseq/train/shares/ragged_calibration.hpp"
#include "hetseq/train/shares/update_cost.hpp"
#include "hetseq/session/group_shares.hpp"
#include "hetseq/session/pipeline/pipeline_shares.hpp"
#include "hetseq/session/replica.hpp"
#include "hetseq/session/resume.hpp"
#include "hetseq/session/run_settings.hpp"

#include "capacity_units.hpp"
#include "hetseq/version.hpp"

namespace hetseq {

namespace {

constexpr std::int64_t mib = 1 << 20;

// This rank's part of the host's memory [MiB], without the caches that fill during training (that
// of validation is not larger than that of training). It is 0 on other devices, which report when
// they are full.
std::int64_t memory_to_plan_with(const RunSettings& settings, int rank, Replica& replica) {
    if (!settings.device.is_cpu())
        return 0;
    const std::int64_t caches = replica.feed().corpus().cache_bytes() / mib *
                                (settings.options().valid_data.empty() ? 1 : 2);
    return std::max<std::int64_t>(
        1,
        settings.topology.rank(rank).memory_mb - caches / settings.topology.ranks_on_host_of(rank));
}

CalibrationOptions calibration_options(const RunSettings& settings, int rank, Replica& replica) {
    return {.memory_mb = memory_to_plan_with(settings, rank, replica),
            .may_recompute = settings.recomputes_at_need(rank)};
}

// The other users of memory while speeds are measured.
std::string memory_users(const RunSettings& settings, int rank, Replica& replica) {
    const char* const saved = replica.checkpoints() == nullptr    ? ", no checkpoints"
                              : replica.memory().has_copies(rank) ? ", checkpoints"
                                                                  : ", checkpoints without copies";
    return settings.options().parts.optimizer.name + saved;
}

// All that this rank's cost depends on.
std::string cost_key(const RunSettings& settings, int rank, Replica& replica) {
    std::vector<std::string> parts{version::number,
                                   version::revision,
                                   settings.topology.rank(rank).device_name,
                                   rank_limits(settings, rank),
                                   to_string(settings.precisions[static_cast<std::size_t>(rank)]),
                                   settings.options().reduce_precision,
                                   settings.options().model,
                                   settings.options().batching,
                                   replica.model().config_json(),
                                   memory_users(settings, rank, replica),
                                   std::to_string(memory_to_plan_with(settings, rank, replica))};
    for (const auto& parameter : replica.parameters().parameters())
        parts.push_back(std::to_string(parameter.numel));
    for (const auto& [field, shape] : replica.feed().corpus().row_shapes()) {
        parts.push_back(field);
        for (const std::int64_t length : shape)
            parts.push_back(std::to_string(length));
    }
    // What samples of unequal length cost depends on their lengths.
    const RaggedExtents& extents = replica.feed().corpus().extents();
    for (std::size_t field = 0; field < extents.borders.size(); ++field) {
        parts.push_back(std::to_string(extents.borders[field].back()));
        parts.push_back(std::to_string(extents.squares[field]));
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

// Collective. The time that this rank takes in an update beside forward and backward, and what
// reductions take from those [ms].
double measured_update_ms(const HostComm& world, const RunSettings& settings, Replica& replica) {
    const UpdateCost update = agree_on(world, [&] {
        return measure_update(replica.parameters(), [&](FlatParameters& parameters) {
            return replica.make_optimizer(parameters);
        });
    });
    return update.ms + update.ms_per_cpu_ms * measure_reduction_cpu_ms(replica.parameters(),
                                                                       replica.communicator(),
                                                                       sent_type(settings));
}

// A cache is a convenience: a run goes on without it.
void keep(const StepCostCache& cache, const std::string& key, const KeptCost& kept) {
    const std::string problem = cache.store(key, kept);
    if (!problem.empty())
        log::warn("measured speeds are not kept, so the next run measures them again (" + problem +
                  "): give --cache-dir a folder that can be written, or none");
}

// Collective. The ranks' costs; those that are not known are measured.
std::vector<StepCost> measured_costs(const HostComm& world,
                                     const RunSettings& settings,
                                     Replica& replica) {
    const StepCostCache cache = cache_of(settings.options());
    const std::string key = cost_key(settings, world.rank(), replica);
    std::optional<StepCost> cost;
    if (const std::optional<KeptCost> kept = cache.find(key))
        cost = kept->cost;
    const std::int64_t unknown = world.all_reduce(std::int64_t{cost ? 0 : 1}, ReduceOp::sum);
    if (unknown > 0) {
        log::info("measuring the speed of " + std::to_string(unknown) + " of " +
                  std::to_string(world.size()) + " ranks");
        StepCost measured = calibrate(world,
                                      replica.model(),
                                      replica.parameters(),
                                      replica.feed().loader(),
                                      replica.plan(),
                                      settings.capacities,
                                      cost,
                                      calibration_options(settings, world.rank(), replica));
        const double update_ms = measured_update_ms(world, settings, replica);
        if (!cost)
            measured.update_ms = update_ms;
        const std::int64_t capacity = settings.capacities[static_cast<std::size_t>(world.rank())];
        if (measured.micro_batch < capacity)
            log::warn_here("memory holds only micro-batches of " +
                           std::to_string(measured.micro_batch) + " samples (--max-sentences is " +
                           std::to_string(capacity) + ")");
        const std::vector<StepCost> costs = pooled_costs(world, settings, measured);
        if (!cost)
            keep(cache, key, {costs[static_cast<std::size_t>(world.rank())]});
        return costs;
    }
    return pooled_costs(world, settings, *cost);
}

// Collective. True if every rank has a kept cost, and all of them count samples in the same units.
bool all_can_use(const HostComm& world, const std::optional<KeptCost>& kept) {
    constexpr double none = -1;
    const std::vector<double> squares = world.all_gather(kept ? kept->item_cost.square : none);
    return squares.front() != none &&
           std::count(squares.begin(), squares.end(), squares.front()) == std::ssize(squares);
}

// Collective. The ranks' costs, by rank, in units of the work that it sets. If any of them is not
// known, all are measured: their units are settled together.
std::vector<StepCost> measured_ragged_costs(const HostComm& world,
                                            const RunSettings& settings,
                                            Replica& replica,
                                            RaggedWork& work) {
    const StepCostCache cache = cache_of(settings.options());
    const std::string key = cost_key(settings, world.rank(), replica);
    const std::optional<KeptCost> kept = cache.find(key);
    if (all_can_use(world, kept)) {
        work = ragged_work(settings, replica.feed().corpus(), kept->item_cost);
        return pooled_costs(world, settings, kept->cost);
    }
    log::info("measuring the speed of " + std::to_string(world.size()) + " ranks");
    RaggedCalibration measured =
        calibrate_ragged(world,
                         replica.model(),
                         replica.parameters(),
                         replica.feed().loader(),
                         replica.plan(),
                         settings.capacities,
                         calibration_options(settings, world.rank(), replica));
    const std::int64_t capacity = settings.capacities[static_cast<std::size_t>(world.rank())];
    if (measured.micro_batch < capacity)
        log::warn_here("memory holds micro-batches of " + std::to_string(measured.micro_batch) +
                       " tokens, --max-tokens is " + std::to_string(capacity));
    measured.cost.update_ms = measured_update_ms(world, settings, replica);
    work = ragged_work(settings, replica.feed().corpus(), measured.item_cost);
    measured.cost.micro_batch = in_units({measured.micro_batch}, work).front();
    const std::vector<StepCost> costs = pooled_costs(world, settings, measured.cost);
    keep(cache, key, {costs[static_cast<std::size_t>(world.rank())], measured.item_cost});
    return costs;
}

// The allocations that --balance file: repeats; empty for another balance. Throws on all ranks.
RecordedAllocations recorded_allocations(const HostComm& world, const RunSettings& settings) {
    if (settings.options().balance.policy != "file")
        return {};
    return agree_on(world, [&] {
        // Rows of unequal lengths are cut by their work, of which a batch of samples has no number.
        return read_allocations(settings.options().balance.plan_file,
                                settings.capacities,
                                settings.is_ragged() ? 0 : settings.options().batch_size);
    });
}

// Costs may have been measured by another rank of the kind, or by an earlier run.
void recompute_as_measured(const StepCost& cost, Model& model) {
    model.recompute(std::min(cost.recomputed_layers, model.recomputable_layers()));
    if (model.recomputed_layers() > 0)
        log::warn_here("memory holds more where backward computes " +
                       count_text(model.recomputed_layers(), "layer") +
                       " again, and this costs least");
}

// `known`: the ranks' costs, by rank; empty: not known.
SharePlan share_plan(const HostComm& world,
                     const RunSettings& settings,
                     const RecordedAllocations& recorded,
                     Replica& replica,
                     const std::vector<StepCost>& known) {
    const std::string& balance = settings.options().balance.policy;
    if (balance == "auto" && std::ssize(known) == world.size())
        return {world, balance, known};
    if (balance == "auto" && world.size() > 1)
        return {world, balance, measured_costs(world, settings, replica)};
    if (balance == "file")
        return {world, balance, recorded_costs(settings.capacities, recorded)};
    if (balance == "auto")
        return {world, balance, declared_costs(settings.capacities)};
    return {world, balance, settings.capacities};
}

// The same where samples have unequal lengths. `known`: in units of `item_cost`.
SharePlan ragged_share_plan(const HostComm& world,
                            const RunSettings& settings,
                            const RecordedAllocations& recorded,
                            Replica& replica,
                            const std::vector<StepCost>& known,
                            const ItemCost& item_cost) {
    const std::string& balance = settings.options().balance.policy;
    const Corpus& corpus = replica.feed().corpus();
    RaggedWork work = ragged_work(settings, corpus, item_cost);
    std::vector<StepCost> costs = known;
    if (balance == "file") {
        work = ragged_work(settings, corpus, recorded.item_cost);
        work.full_batch = recorded.full_batch();
        costs = recorded_costs(in_units(settings.capacities, work), recorded);
    } else if (balance == "auto" && std::ssize(known) != world.size() && world.size() > 1) {
        costs = measured_ragged_costs(world, settings, replica, work);
    } else if (balance == "auto" && std::ssize(known) != world.size()) {
        costs = declared_costs(in_units(settings.capacities, work));
    }
    SharePlan plan = balance == "declared" || balance == "equal"
                         ? SharePlan(world, balance, in_units(settings.capacities, work))
                         : SharePlan(world, balance, std::move(costs));
    plan.set_ragged(std::move(work));
    return plan;
}

}  // namespace

RaggedWork ragged_work(const RunSettings& settings, const Corpus& corpus, const ItemCost& cost) {
    const RaggedExtents& extents = corpus.extents();
    double values = 0, of_longest_field = 0, squares = 0, units = 0, samples = 0;
    const std::vector<std::size_t> ragged = ragged_fields(settings.schema);
    for (std::size_t field = 0; field < extents.borders.size(); ++field) {
        const FieldSchema& schema = settings.schema.fields[ragged[field]];
        if (!schema.sets_lengths)
            continue;
        const auto own = static_cast<double>(extents.borders[field].back()) /
                         static_cast<double>(schema.position_values);
        values += own;
        squares += extents.squares[field];
        of_longest_field = std::max(of_longest_field, own);
    }
    for (std::size_t block = 0; block < extents.block_units.size(); ++block) {
        units += static_cast<double>(extents.block_units[block]);
        samples += static_cast<double>(extents.block_samples[block]);
    }
    const double total = std::max(values + cost.square * squares, 1.0);
    const BatchSize batch = settings.batch_size();
    const double part = batch.units > 0
                            ? static_cast<double>(batch.units) / std::max(units, 1.0)
                            : static_cast<double>(batch.samples) / std::max(samples, 1.0);
    return {.cost = cost,
            .full_batch = std::max<std::int64_t>(std::llround(part * total), 1),
            .units_per_token = total / std::max(of_longest_field, 1.0),
            .unit = corpus.counts_units() ? "tokens" : "samples",
            .reported_units = units / total,
            .max_samples = settings.max_samples};
}

SharePlan declared_shares(const HostComm& world,
                          const RunSettings& settings,
                          const Corpus& corpus) {
    if (!settings.is_ragged())
        return {world, "declared", settings.capacities};
    RaggedWork work = ragged_work(settings, corpus, {});
    SharePlan plan(world, "declared", in_units(settings.capacities, work));
    plan.set_ragged(std::move(work));
    return plan;
}

StartingShares make_starting_shares(const HostComm& world,
                                    const RunSettings& settings,
                                    Replica& replica,
                                    const StartingPoint& start) {
    const std::string& balance = settings.options().balance.policy;
    const RecordedAllocations recorded = recorded_allocations(world, settings);
    const auto plan = [&] {
        if (replica.stage() != nullptr)
            return pipeline_share_plan(world, settings, recorded, replica, start);
        return settings.is_ragged()
                   ? ragged_share_plan(
                         world, settings, recorded, replica, start.costs, start.progress.item_cost)
                   : share_plan(world, settings, recorded, replica, start.costs);
    };
    StartingShares shares{plan(), balance == "auto" ? start.replay : recorded.by_update};
    agree_on(world, [&] { check_groups(shares.plan, replica.plan(), "training"); });
    if (settings.recomputes_at_need(world.rank()) && replica.stage() == nullptr)
        recompute_as_measured(shares.plan.costs()[static_cast<std::size_t>(world.rank())],
                              replica.model());
    // Calibration took more memory than training does; LibTorch would keep it from CUDA's
    // libraries.
    if (!settings.device.is_cpu())
        release_cached_memory();
    const auto holding = holding_at(shares.replay, start.progress.updates);
    if (holding != shares.replay.end())
        shares.plan.change(holding->second);
    return shares;
}

}  // namespace hetseq
